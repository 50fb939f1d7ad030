#!/bin/sh
# The gateway with plain curl. Start it first, in front of any OpenAI-compatible endpoint:
#   guardrail serve --upstream https://api.openai.com/v1 --port 8000
# Then: OPENAI_API_KEY=... OPENAI_MODEL=gpt-4o-mini sh examples/gateway_curl.sh
set -eu
gateway=${GATEWAY:-http://127.0.0.1:8000}
key=${OPENAI_API_KEY:-none}
model=${OPENAI_MODEL:-gpt-4o-mini}
question='Who was Mary Shelley, the wife of Percy Bysshe Shelley?'

echo "== a chat completion, judged"
curl -sS --fail-with-body "$gateway/v1/chat/completions" \
  -H "authorization: Bearer $key" -H 'content-type: application/json' \
  -d "{\"model\": \"$model\", \"messages\": [{\"role\": \"user\", \"content\": \"$question\"}]}"

echo; echo "== the same as a stream: a sentence leaves once it is judged"
curl -sSN --fail-with-body "$gateway/v1/chat/completions" \
  -H "authorization: Bearer $key" -H 'content-type: application/json' \
  -d "{\"model\": \"$model\", \"stream\": true, \"messages\": [{\"role\": \"user\", \"content\": \"$question\"}]}"

echo; echo "== only checked; what to do with the verdict is up to you"
curl -sS --fail-with-body "$gateway/v1/checks" \
  -H "authorization: Bearer $key" -H 'content-type: application/json' \
  -d "{\"question\": \"$question\", \"answer\": \"Her mother was Mary Wollstonecraft.\"}"

echo; echo "== ranked, best first"
curl -sS --fail-with-body "$gateway/v1/rank" \
  -H "authorization: Bearer $key" -H 'content-type: application/json' \
  -d "{\"question\": \"$question\", \"answers\": [\"She was a pilot.\", \"Her mother was Mary Wollstonecraft.\"]}"

echo; echo "== numbers for Prometheus"
curl -sS --fail-with-body "$gateway/metrics" | grep '^kg_guardrail_requests_total'
