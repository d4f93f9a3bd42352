"""OO7 on ZODB: the same module, number for number, as `thorp_workloads::oo7` makes.

Every object of OO7 is a persistent object of its own, as it is one of Thorp's. What is drawn follows from the seed in the
same way, so that both count the same and come to the same checksum.
"""

from persistent import Persistent
from persistent.list import PersistentList

MASK = (1 << 64) - 1
LENGTHS = 100_000
TYPES = 10


class Random:
    """SplitMix64, as in `thorp_workloads::random`."""

    def __init__(self, seed):
        self.state = seed & MASK

    @classmethod
    def of(cls, seed, thing):
        rotated = ((thing << 32) | (thing >> 32)) & MASK
        return cls(cls(seed ^ rotated).number())

    def number(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        mixed = self.state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
        return mixed ^ (mixed >> 31)

    def below(self, end):
        return (self.number() * end) >> 64

    def chance(self, percent):
        return self.below(100) < percent


USES, CONNECTIONS, WIRING, ATOMICS = (n << 32 for n in (2, 6, 5, 7))


class Config:
    """How large a module is."""

    def __init__(self, composites=500, atomics=20, documents=2_000, manual=100_000, levels=7):
        self.seed = 1993
        self.composites = composites
        self.atomics = atomics
        self.connections = 3
        self.documents = documents
        self.manual = manual
        self.levels = levels
        self.fan_out = 3
        self.composites_per_base = 3

    @classmethod
    def named(cls, name):
        return {
            "tiny": cls(composites=10, manual=10_000, levels=3),
            "small": cls(),
            "medium": cls(atomics=200, documents=20_000, manual=1_000_000),
        }[name]

    @property
    def bases(self):
        return self.fan_out ** (self.levels - 1)

    @property
    def complexes(self):
        return sum(self.fan_out**level for level in range(self.levels - 1))


class Module(Persistent):
    pass


class Assembly(Persistent):
    pass


class Composite(Persistent):
    pass


class Document(Persistent):
    pass


class Atomic(Persistent):
    pass


class Connection(Persistent):
    pass


def build(root, config, commit):
    """Makes the module; `commit` is called between batches."""
    random = Random.of(config.seed, USES)
    uses = [
        [random.below(config.composites) for _ in range(config.composites_per_base)]
        for _ in range(config.bases)
    ]
    composites = []
    module = Module()
    module.composites = PersistentList()
    root["oo7"] = module
    for place in range(config.composites):
        composite = make_composite(config, place + 1)
        composites.append(composite)
        module.composites.append(composite)
        if place % 20 == 19:
            commit()
    assemblies = [Assembly() for _ in range(config.complexes + config.bases)]
    for place, assembly in enumerate(assemblies):
        assembly.id = place + 1
        assembly.above = assemblies[max(place - 1, 0) // config.fan_out]
        base = place - config.complexes
        if base >= 0:
            assembly.is_base = True
            assembly.below = [composites[used] for used in uses[base]]
            for used in assembly.below:
                used.users.append(assembly)
        else:
            assembly.is_base = False
            first = place * config.fan_out + 1
            assembly.below = assemblies[first : first + config.fan_out]
    module.design = assemblies[0]
    module.manual = text("I am the manual for module #00000001. ", config.manual)
    commit()
    return module


def make_composite(config, number):
    composite = Composite()
    composite.id = number
    composite.users = []
    random = Random.of(config.seed, WIRING + number)
    ends = [
        [
            (part + 1) % config.atomics if n == 0 else random.below(config.atomics)
            for n in range(config.connections)
        ]
        for part in range(config.atomics)
    ]
    parts = [make_atomic(config, composite, number, part) for part in range(config.atomics)]
    random = Random.of(config.seed, CONNECTIONS + number)
    for part, to_all in zip(parts, ends):
        for to in to_all:
            connection = Connection()
            connection.type = "type%06d" % random.below(TYPES)
            connection.length = random.below(LENGTHS)
            connection.source, connection.to = part, parts[to]
            part.outgoing.append(connection)
            parts[to].incoming.append(connection)
    composite.parts = parts
    composite.root = parts[0]
    document = Document()
    document.id = number
    document.title = "Composite Part %08d" % number
    sentence = "I am the documentation for composite part #%08d. " % number
    document.text = text(sentence, config.documents)
    document.composite = composite
    composite.document = document
    return composite


def make_atomic(config, composite, number, place):
    part = Atomic()
    part.id = (number - 1) * config.atomics + place + 1
    random = Random.of(config.seed, ATOMICS + part.id)
    part.date = 1000 + random.below(1000)
    part.x, part.y = random.below(LENGTHS), random.below(LENGTHS)
    part.document_id = 1 + random.below(config.composites)
    part.type = "type%06d" % random.below(TYPES)
    part.composite = composite
    part.outgoing, part.incoming = [], []
    return part


def text(sentence, length):
    return (sentence * (length // len(sentence) + 1))[:length]


def traverse(module, traversal, prefetch=None):
    """T1 or T2b. Tells visits, swaps, and a sum over x and y as they were met.

    `prefetch`, if given, is told of the objects of a composite before they are read: once of its parts, and when these are
    here of what connects them.
    """
    swaps_all = {"T1": False, "T2b": True}[traversal]
    visits, swaps, checksum = 0, 0, 0
    waiting = [module.design]
    while waiting:
        assembly = waiting.pop()
        if not assembly.is_base:
            waiting.extend(reversed(assembly.below))
            continue
        for composite in assembly.below:
            if prefetch:
                prefetch(composite.parts)
                prefetch([connection for part in composite.parts for connection in part.outgoing])
            seen, parts = set(), [composite.root]
            while parts:
                part = parts.pop()
                if part._p_oid in seen:
                    continue
                seen.add(part._p_oid)
                x, y = part.x, part.y
                visits += 1
                checksum += x | y << 32
                if swaps_all:
                    part.x, part.y = y, x
                    swaps += 1
                parts.extend(connection.to for connection in reversed(part.outgoing))
    return {"atomic_visits": visits, "swaps": swaps, "checksum": checksum & MASK}
