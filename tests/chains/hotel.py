"""A hotel in five documents, true and false sentences of it, and a question."""

from guardrail import Passage

HOTEL_QUESTION = "How many rooms does the Kestrel Hotel have?"
SECRET = "zephyrcanary"
RIGHT = "The Kestrel Hotel has 42 rooms."
WRONG = f"The Kestrel Hotel has 97 rooms in {SECRET}."
MORE = "Breakfast costs 12 euros."
SAID = f"{RIGHT} {WRONG} {MORE}"

DOCUMENTS = [
    Passage(text="The Kestrel Hotel stands in Bergen. The Kestrel Hotel has 42 rooms.", id="d1",
            title="Kestrel guide", url="https://h.example/guide"),
    Passage(text="Breakfast costs 12 euros. It is served until 10:30.", id="d2", title="Prices",
            url="https://h.example/prices"),
    Passage(text="The pool is open daily.", id="d3", title="Pool", url="https://h.example/pool"),
    Passage(text="Dogs are welcome.", id="d4", title="Dogs", url="https://h.example/dogs"),
    Passage(text="The sauna is closed.", id="d5", title="Sauna", url="https://h.example/sauna"),
]  # fmt: skip
ITEMS = [document.model_dump() for document in DOCUMENTS]
NOTED = (
    "The Kestrel Hotel has 42 rooms [1]. Breakfast costs 12 euros [2].\n\n"
    "[1] Kestrel guide (https://h.example/guide)  \n[2] Prices (https://h.example/prices)"
)
