"""Countries, peoples, faiths and roles in other words than a graph writes them."""

from __future__ import annotations

from guardrail.vocabulary import property_words

__all__ = ["PROPER", "names_another", "nation"]

NATIONS = """\
afghanistan; islamic emirate of afghanistan; islamic republic of afghanistan | afghan
albania; republic of albania | albanian
algeria; people s democratic republic of algeria | algerian
andorra; principality of andorra | andorran
angola; republic of angola | angolan
antigua and barbuda | antiguan barbudan
argentina; argentine republic | argentine argentinian argentinean
armenia; republic of armenia | armenian
australia; commonwealth of australia | australian aussie
austria; republic of austria; first republic of austria | austrian
azerbaijan; republic of azerbaijan | azerbaijani azeri
the bahamas; bahamas; commonwealth of the bahamas | bahamian
bahrain; kingdom of bahrain | bahraini
bangladesh; people s republic of bangladesh | bangladeshi
barbados | barbadian bajan
belarus; republic of belarus | belarusian belarussian byelorussian
belgium; kingdom of belgium | belgian flemish walloon
belize | belizean
benin; republic of benin; dahomey | beninese dahomean
bhutan; kingdom of bhutan | bhutanese
bolivia; plurinational state of bolivia | bolivian
bosnia and herzegovina; bosnia | bosnian herzegovinian
botswana; republic of botswana | botswanan motswana batswana
brazil; federative republic of brazil; empire of brazil | brazilian
brunei; brunei darussalam | bruneian
bulgaria; republic of bulgaria; kingdom of bulgaria | bulgarian
burkina faso; upper volta | burkinabe burkinese
burundi; republic of burundi | burundian
cambodia; kingdom of cambodia | cambodian khmer
cameroon; republic of cameroon | cameroonian
canada; dominion of canada | canadian
cape verde; cabo verde; republic of cabo verde | cape_verdean cabo_verdean
central african republic | central_african
chad; republic of chad | chadian
chile; republic of chile | chilean
china; people s republic of china; prc | chinese
colombia; republic of colombia; gran colombia | colombian
comoros; union of the comoros | comorian comoran
democratic republic of the congo; dr congo; zaire; belgian congo | congolese zairean zairian
republic of the congo; congo brazzaville; congo | congolese
costa rica; republic of costa rica | costa_rican
croatia; republic of croatia; kingdom of croatia | croatian croat
cuba; republic of cuba | cuban
cyprus; republic of cyprus | cypriot
czech republic; czechia | czech czechs
denmark; kingdom of denmark | danish dane
djibouti; republic of djibouti | djiboutian
dominica; commonwealth of dominica | dominican
dominican republic | dominican
east timor; timor leste | timorese
ecuador; republic of ecuador | ecuadorian ecuadorean
egypt; arab republic of egypt; republic of egypt; kingdom of egypt | egyptian
el salvador; republic of el salvador | salvadoran salvadorian salvadorean
equatorial guinea | equatorial_guinean equatoguinean
eritrea; state of eritrea | eritrean
estonia; republic of estonia | estonian
eswatini; swaziland; kingdom of eswatini | swazi
ethiopia; ethiopian empire; federal democratic republic of ethiopia | ethiopian
fiji; republic of fiji | fijian
finland; republic of finland; grand duchy of finland | finnish finn
france; french republic; french third republic; french first republic | french frenchman \
frenchwoman frenchmen
gabon; gabonese republic | gabonese
the gambia; gambia; republic of the gambia | gambian
georgia; republic of georgia; democratic republic of georgia | georgian
germany; federal republic of germany | german
ghana; republic of ghana; gold coast | ghanaian ghanian
greece; hellenic republic; kingdom of greece | greek hellenic
grenada | grenadian
guatemala; republic of guatemala | guatemalan
guinea; republic of guinea | guinean
guinea bissau; republic of guinea bissau | bissau_guinean
guyana; co operative republic of guyana; british guiana | guyanese
haiti; republic of haiti | haitian
honduras; republic of honduras | honduran
hungary; kingdom of hungary; republic of hungary; hungarian people s republic | hungarian magyar
iceland; republic of iceland | icelandic icelander
india; republic of india | indian
indonesia; republic of indonesia | indonesian
iran; islamic republic of iran; pahlavi iran; imperial state of iran; persia | iranian persian
iraq; republic of iraq; kingdom of iraq | iraqi
ireland; republic of ireland; irish free state; kingdom of ireland | irish irishman irishwoman \
irishmen
israel; state of israel | israeli
italy; italian republic; republic of italy; kingdom of italy | italian
ivory coast; cote d ivoire; republic of cote d ivoire | ivorian ivoirian
jamaica; colony of jamaica | jamaican
japan; state of japan; empire of japan | japanese
jordan; hashemite kingdom of jordan | jordanian
kazakhstan; republic of kazakhstan | kazakh kazakhstani
kenya; republic of kenya | kenyan
kiribati; republic of kiribati | kiribati gilbertese
north korea; democratic people s republic of korea | north_korean
south korea; republic of korea | south_korean
korea; joseon; goryeo; korean empire; silla | korean
kosovo; republic of kosovo | kosovar kosovan kosovo_albanian
kuwait; state of kuwait | kuwaiti
kyrgyzstan; kyrgyz republic | kyrgyz kyrgyzstani kirghiz
laos; lao people s democratic republic | laotian lao
latvia; republic of latvia | latvian
lebanon; lebanese republic | lebanese
lesotho; kingdom of lesotho | basotho mosotho
liberia; republic of liberia | liberian
libya; state of libya; libyan arab jamahiriya; kingdom of libya | libyan
liechtenstein; principality of liechtenstein | liechtensteiner
lithuania; republic of lithuania; grand duchy of lithuania | lithuanian
luxembourg; grand duchy of luxembourg | luxembourgish luxembourger luxemburgish
madagascar; republic of madagascar | malagasy madagascan
malawi; republic of malawi | malawian
malaysia; federation of malaya | malaysian malayan
maldives; republic of maldives | maldivian
mali; republic of mali | malian
malta; republic of malta | maltese
marshall islands; republic of the marshall islands | marshallese
mauritania; islamic republic of mauritania | mauritanian
mauritius; republic of mauritius | mauritian
mexico; united mexican states; new spain | mexican
federated states of micronesia; micronesia | micronesian
moldova; republic of moldova; moldavia | moldovan moldavian
monaco; principality of monaco | monegasque monacan
mongolia; mongolian people s republic; mongol empire | mongolian mongol
montenegro; kingdom of montenegro; principality of montenegro | montenegrin
morocco; kingdom of morocco | moroccan
mozambique; republic of mozambique | mozambican
myanmar; burma; union of burma | burmese
namibia; republic of namibia | namibian
nauru; republic of nauru | nauruan
nepal; federal democratic republic of nepal; kingdom of nepal | nepali nepalese
netherlands; the netherlands | dutch dutchman dutchwoman dutchmen holland netherlandish
kingdom of the netherlands; dutch republic; batavian republic | dutch dutchman dutchwoman \
netherlands holland
new zealand; dominion of new zealand | new_zealander kiwi
nicaragua; republic of nicaragua | nicaraguan
niger; republic of the niger | nigerien
nigeria; federal republic of nigeria | nigerian
north macedonia; republic of north macedonia; republic of macedonia; macedonia | macedonian
norway; kingdom of norway | norwegian norseman
oman; sultanate of oman | omani
pakistan; islamic republic of pakistan; dominion of pakistan | pakistani
palau; republic of palau | palauan
palestine; state of palestine; mandatory palestine; palestinian territories | palestinian
panama; republic of panama | panamanian
papua new guinea | papua_new_guinean papuan
paraguay; republic of paraguay | paraguayan
peru; republic of peru | peruvian
philippines; republic of the philippines; the philippines | filipino filipina filipinas \
philippine pinoy
poland; republic of poland; second polish republic; polish people s republic; kingdom of poland; \
congress poland; polish lithuanian commonwealth | polish pole
portugal; portuguese republic; kingdom of portugal | portuguese
puerto rico; commonwealth of puerto rico | puerto_rican
qatar; state of qatar | qatari
romania; kingdom of romania; socialist republic of romania; wallachia | romanian rumanian
russia; russian federation; tsardom of russia | russian
rwanda; republic of rwanda | rwandan rwandese
saint kitts and nevis | kittitian nevisian
saint lucia | saint_lucian st_lucian
saint vincent and the grenadines | vincentian saint_vincentian
samoa; independent state of samoa; western samoa | samoan
san marino; republic of san marino | sammarinese
sao tome and principe | santomean sao_tomean
saudi arabia; kingdom of saudi arabia | saudi saudi_arabian
senegal; republic of senegal | senegalese
serbia; republic of serbia; kingdom of serbia; principality of serbia | serbian serb
seychelles; republic of seychelles | seychellois
sierra leone; republic of sierra leone | sierra_leonean
singapore; republic of singapore | singaporean
slovakia; slovak republic | slovak slovakian
slovenia; republic of slovenia | slovenian slovene
solomon islands | solomon_islander
somalia; federal republic of somalia; somali republic | somali somalian
south africa; republic of south africa; union of south africa | south_african
south sudan; republic of south sudan | south_sudanese
spain; kingdom of spain; crown of castile; second spanish republic; francoist spain; spanish \
empire | spanish spaniard
sri lanka; dominion of ceylon; ceylon | sri_lankan ceylonese sinhalese
sudan; republic of the sudan | sudanese
suriname; republic of suriname; dutch guiana | surinamese
sweden; kingdom of sweden; swedish empire | swedish swede
switzerland; swiss confederation; old swiss confederacy | swiss
syria; syrian arab republic | syrian
taiwan; republic of china | taiwanese chinese
tajikistan; republic of tajikistan | tajik tajikistani
tanzania; united republic of tanzania; tanganyika; zanzibar | tanzanian
thailand; kingdom of thailand; siam | thai siamese
togo; togolese republic | togolese
tonga; kingdom of tonga | tongan
trinidad and tobago; republic of trinidad and tobago | trinidadian tobagonian trinbagonian trini
tunisia; republic of tunisia; tunisian republic | tunisian
turkey; republic of turkey; turkiye; republic of turkiye | turkish turk
turkmenistan | turkmen turkmenistani
tuvalu | tuvaluan
uganda; republic of uganda | ugandan
ukraine; ukrainian people s republic | ukrainian
united arab emirates; uae | emirati
united kingdom; united kingdom of great britain and northern ireland; uk | british briton uk \
britain english scottish welsh northern_irish
united kingdom of great britain and ireland | british briton uk britain english irish scottish \
welsh
united states of america; united states; usa; us | american us usa states america
uruguay; eastern republic of uruguay | uruguayan
uzbekistan; republic of uzbekistan | uzbek uzbekistani
vanuatu; republic of vanuatu | vanuatuan
vatican city; vatican city state; holy see | vatican
venezuela; bolivarian republic of venezuela | venezuelan
vietnam; socialist republic of vietnam; viet nam; north vietnam; south vietnam; nguyen dynasty | \
vietnamese
yemen; republic of yemen; north yemen; south yemen | yemeni yemenite
zambia; republic of zambia; northern rhodesia | zambian
zimbabwe; republic of zimbabwe | zimbabwean
rhodesia; southern rhodesia | rhodesian
great britain; kingdom of great britain | british briton britain english scottish welsh
england; kingdom of england | english englishman englishwoman englishmen
scotland; kingdom of scotland | scottish scots scot scotsman scotswoman
wales; principality of wales | welsh welshman welshwoman
northern ireland | northern_irish irish
greenland | greenlandic greenlander
faroe islands | faroese
kingdom of france; first french empire; second french empire; july monarchy; vichy france; \
bourbon restoration | french frenchman frenchwoman france
german reich; german empire; weimar republic; nazi germany; east germany; west germany; german \
democratic republic; german confederation; allied occupied germany | german germany nazi \
east_german west_german
holy roman empire | german austrian
kingdom of prussia; prussia; duchy of prussia; free state of prussia | prussian german
kingdom of bavaria; bavaria; electorate of bavaria; duchy of bavaria | bavarian german
kingdom of saxony; saxony; electorate of saxony; duchy of saxony | saxon german
kingdom of wurttemberg; duchy of wurttemberg | german swabian
kingdom of hanover; electorate of hanover | german hanoverian
archduchy of austria; austrian empire; habsburg monarchy; cisleithania | austrian austria
austria hungary; austro hungarian empire | austrian hungarian austro_hungarian
ancient greece; classical athens | greek greece athenian
sparta | spartan greek
kingdom of macedonia; ancient macedonia | macedonian greek
ancient rome; roman empire; roman republic; western roman empire | roman rome
byzantine empire; eastern roman empire | byzantine greek
ottoman empire | ottoman turkish turk
safavid iran; qajar iran; achaemenid empire; sasanian empire; parthian empire | persian iranian
ancient egypt; ptolemaic kingdom; new kingdom of egypt; mamluk sultanate | egyptian egypt
babylonia | babylonian
assyria; neo assyrian empire | assyrian
carthage; ancient carthage | carthaginian
phoenicia | phoenician
czechoslovakia; czechoslovak socialist republic | czech czechs slovak czechoslovak \
czechoslovakian
bohemia; kingdom of bohemia; margraviate of moravia; moravia | bohemian czech moravian
soviet union; union of soviet socialist republics; ussr | soviet russian ussr russia
russian empire; russian soviet federative socialist republic; grand duchy of moscow | russian \
russia
ukrainian soviet socialist republic | ukrainian soviet
georgian soviet socialist republic; kingdom of georgia | georgian
yugoslavia; socialist federal republic of yugoslavia; kingdom of yugoslavia; federal republic of \
yugoslavia | yugoslav yugoslavian serbian croatian slovene
serbia and montenegro; state union of serbia and montenegro | serbian montenegrin serb
qing dynasty; ming dynasty; yuan dynasty; tang dynasty; song dynasty; northern song; southern \
song; han dynasty; eastern han; western han; sui dynasty; liao dynasty; jin dynasty; qin; zhou \
dynasty; cao wei; eastern wu; shu han; northern wei | chinese china
tokugawa shogunate; tokugawa japan | japanese japan
british raj; british india; company rule in india | indian india british
dominion of india; mughal empire; maratha empire; delhi sultanate; maurya empire; gupta empire | \
indian india mughal
dutch east indies | indonesian dutch
hawaiian kingdom; kingdom of hawaii; hawaii | hawaiian
confederate states of america | american confederate
republic of texas; texas | texan american
thirteen colonies; british america | american british
inca empire | inca incas incan
aztec empire | aztec
papal states | italian papal
republic of venice | venetian italian venice
republic of florence; duchy of florence | florentine italian
republic of genoa | genoese italian
duchy of milan | milanese italian
kingdom of naples; kingdom of the two sicilies | neapolitan italian
kingdom of sicily; sicily | sicilian italian
kingdom of sardinia; duchy of savoy | sardinian italian savoyard piedmontese
grand duchy of tuscany; duchy of tuscany | tuscan italian
crown of aragon; kingdom of aragon | aragonese spanish catalan
kingdom of castile | castilian spanish
catalonia | catalan
al andalus; caliphate of cordoba | andalusian arab moorish
abbasid caliphate; umayyad caliphate | arab
southern netherlands; spanish netherlands; austrian netherlands; habsburg netherlands; county of \
flanders; flanders | flemish netherlandish belgian
united kingdom of the netherlands | dutch belgian
denmark norway | danish norwegian dane
norman; duchy of normandy | norman
french | france
"""
"""States of today and of history: their names, then adjectives, demonyms and other short names.

Names are parted by ``;``, words by spaces, the parts of one word by ``_``. Plurals are made.
"""

OTHERS: dict[str, str] = {
    "catholicism": "catholic",
    "catholic church": "catholic",
    "roman catholicism": "catholic",
    "roman catholic church": "catholic",
    "islam": "muslim islamic",
    "sunni islam": "muslim sunni islamic",
    "shia islam": "muslim shia islamic",
    "judaism": "jewish jew",
    "jewish people": "jewish jew",
    "jews": "jewish jew",
    "buddhism": "buddhist",
    "hinduism": "hindu",
    "christianity": "christian",
    "protestantism": "protestant",
    "atheism": "atheist",
    "african americans": "african-american black african",
    "male": "man boy",
    "female": "woman girl",
    "human": "person",
    "democratic party": "democrat democratic",
    "republican party": "republican",
    "association football": "football footballer soccer",
    "singer": "vocalist singer-songwriter",
    "actor": "actress",
    "film actor": "actor actress film",
}
"""Other words for values that prose hardly ever writes as the graph does."""

PROPER = frozenset({"pole", "poles", "polish", "swede", "swedes", "scots", "lao", "vatican"})
"""Words for peoples that are common words where they are written small."""

INVARIANT = ("s", "sh", "ch", "ese", "chman", "shman", "sman", "seman", "woman", "men", "ic", "a")
"""Endings of words that take no plural in *s*, or have it in the table."""


def nation(value: str) -> tuple[str, ...]:
    """Other words for a country, people or faith: ``France`` → ``french``, ``frenchman``.

    Returns:
        Folded words; some are several, as *south african* is.
    """
    return _WORDS.get(property_words(value), ())


def names_another(before: str, word: str) -> bool:
    """Whether a word is the end of another people's name: the *Sudanese* of *South Sudanese*."""
    return f"{before} {word}" in _COMPOUND


def _with_plurals(words: str) -> tuple[str, ...]:
    single = [word.replace("_", " ") for word in words.split()]
    plural = [f"{word}s" for word in single if not word.endswith(INVARIANT)]
    return tuple(dict.fromkeys(single + plural))


def _rows() -> dict[str, tuple[str, ...]]:
    """Every name of a state with its words."""
    found = {name: tuple(words.split()) for name, words in OTHERS.items()}
    for line in NATIONS.splitlines():
        names, _, words = line.partition("|")
        labels = [name.strip() for name in names.split(";")]
        for label in labels:
            # The Kingdom of Italy goes by the name of Italy.
            short = (one for one in labels if one != label and f" {one} " in f" {label} ")
            found[label] = (*_with_plurals(words), *short)
    return found


_WORDS = _rows()
_COMPOUND = frozenset(word for words in _WORDS.values() for word in words if " " in word)
