#!/usr/bin/env python3
"""Check an IFC export against its original and the list of edits made in between.

Both files are read by ifcopenshell, a reader that was not written here. The check fails unless

  * every entity of the original is in the export, with the same number, type and attributes, except where an
    edit says that it changed, and there only in the attribute that the edit is about;
  * every edit is in the export exactly once: its tag stands where it has to and nowhere else, a moved object is
    where all its moves together take it, a property is in its set once;
  * the export has no entity besides the original's and those that the edits created;
  * the schema finds nothing wrong with the export that it does not find wrong with the original.

EDITS.json is a list of {"kind", "tag", "entity", "rewritten", "created", ...} as Thorp's demo writes it.
Exit code: 0 if all is well, 1 if something is wrong, 2 if the check could not be made.
"""

import argparse
import collections
import json
import math
import re
import sys

try:
    import ifcopenshell
except ImportError:
    ifcopenshell = None

# Which attribute of a rewritten entity a move may change. Anything else that is rewritten is the moved product.
MOVED_ATTRIBUTES = {
    "IfcCartesianPoint": "Coordinates",
    "IfcAxis2Placement3D": "Location",
    "IfcLocalPlacement": "RelativePlacement",
}
KINDS = ("rename", "move", "add_property")
# Coordinates are sums of reals; this is far below any move and far above the error of adding them up.
TOLERANCE = 1e-6


class CannotCheck(Exception):
    """The check cannot be made."""


class Report:
    """What has been found wrong, printed up to a limit for each heading."""

    def __init__(self, limit):
        self.limit = limit
        self.problems = collections.OrderedDict()

    def add(self, heading, text):
        self.problems.setdefault(heading, []).append(text)

    def show(self):
        for heading, texts in self.problems.items():
            print(f"WRONG: {heading} ({len(texts)})")
            for text in texts[: self.limit]:
                print(f"    {text}")
            if len(texts) > self.limit:
                print(f"    ... and {len(texts) - self.limit} more")


def plain(value):
    """An attribute's value with references as numbers, so that values of two files can be compared."""
    if isinstance(value, ifcopenshell.entity_instance):
        if value.id():
            return ("#", value.id())
        return (value.is_a(), plain(value[0]))
    if isinstance(value, tuple):
        return tuple(plain(member) for member in value)
    return (type(value).__name__, value)


def attributes(entity):
    """All attributes by name."""
    return {entity.attribute_name(place): plain(entity[place]) for place in range(len(entity))}


def by_number(model):
    return {entity.id(): entity for entity in model}


def load_edits(path):
    try:
        with open(path, encoding="utf-8") as file:
            edits = json.load(file)
    except (OSError, ValueError) as error:
        raise CannotCheck(f"{path}: {error}") from error
    if not isinstance(edits, list):
        raise CannotCheck(f"{path}: not a list of edits")
    fields = {"kind": str, "tag": str, "entity": int, "rewritten": list, "created": list}
    for place, edit in enumerate(edits):
        good = isinstance(edit, dict) and all(isinstance(edit.get(key), of) for key, of in fields.items())
        if not good or edit["kind"] not in KINDS or "expected" not in edit:
            raise CannotCheck(f"{path}: edit number {place + 1} is not understood: {edit!r:.200}")
        if edit["kind"] == "move" and not (isinstance(edit.get("delta"), list) and len(edit["delta"]) == 3):
            raise CannotCheck(f"{path}: edit number {place + 1} is a move without a delta of three numbers")
        if edit["kind"] == "add_property" and not isinstance(edit.get("name"), str):
            raise CannotCheck(f"{path}: edit number {place + 1} adds a property without a name")
    return edits


def open_model(path):
    try:
        return ifcopenshell.open(path)
    except Exception as error:  # ifcopenshell raises many kinds, none of them documented
        raise CannotCheck(f"{path}: ifcopenshell does not open it: {error}") from error


def check_file(path, report):
    """What ifcopenshell passes over in silence: numbers defined twice, and a file that is cut short."""
    with open(path, "rb") as file:
        text = re.sub(rb"'(?:[^']|'')*'|/\*.*?\*/", b"", file.read(), flags=re.DOTALL)
    if not text.rstrip().endswith(b"END-ISO-10303-21;"):
        report.add("end of the file", f"{path} does not end in END-ISO-10303-21;")
    for number, count in collections.Counter(re.findall(rb"#(\d+)\s*=", text)).items():
        if count > 1:
            report.add("entities defined more than once", f"#{number.decode()}, {count} times")


def changed_attributes(edits, original):
    """For each rewritten entity of the original, the attributes that its edits may change."""
    allowed = collections.defaultdict(set)
    for edit in edits:
        for number in edit["rewritten"]:
            if number not in original:
                continue
            if edit["kind"] == "rename":
                allowed[number].add("Name")
            elif edit["kind"] == "add_property":
                allowed[number].add("HasProperties")
            else:
                allowed[number].add(MOVED_ATTRIBUTES.get(original[number].is_a(), "ObjectPlacement"))
    return allowed


def check_untouched(original, exported, allowed, report):
    """Everything that no edit is about is as it was. Returns how many entities were compared."""
    for number, before in original.items():
        after = exported.get(number)
        if after is None:
            report.add("entities missing in the export", str(before))
        elif before.is_a() != after.is_a():
            report.add("entities of another type", f"#{number} was {before.is_a()}, is {after.is_a()}")
        else:
            old, new = attributes(before), attributes(after)
            for name in old:
                if old[name] != new[name] and name not in allowed.get(number, ()):
                    report.add("attributes changed by no edit", f"#{number}.{name}: {old[name]} -> {new[name]}")
    return len(original)


def check_created(original, exported, edits, report):
    """The new entities are those that edits created, each by one edit."""
    claims = collections.Counter(number for edit in edits for number in edit["created"])
    for number, count in claims.items():
        if count > 1:
            report.add("entities created by several edits", f"#{number} by {count}")
        if number in original:
            report.add("created entities that the original has", f"#{number}")
        if number not in exported:
            report.add("created entities missing in the export", f"#{number}")
    for number in exported.keys() - original.keys() - claims.keys():
        report.add("entities that no edit created", str(exported[number]))


def texts(value):
    """All strings in an attribute's value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for member in value:
            yield from texts(member)
    elif isinstance(value, ifcopenshell.entity_instance) and not value.id():
        yield from texts(value[0])


def places_of_tags(exported, tags):
    """For each tag, the entities and attributes that hold it, as often as they hold it."""
    places = collections.defaultdict(list)
    for number, entity in exported.items():
        for index in range(len(entity)):
            for text in texts(entity[index]):
                for piece in text.split("[")[1:]:
                    tag, bracket, _ = piece.partition("]")
                    if bracket and tag in tags:
                        places[tag].append((number, entity.attribute_name(index)))
    return places


def check_tags(original, exported, edits, report):
    """The tag of every rename and property stands exactly once, and no other does."""
    counts = collections.Counter(edit["tag"] for edit in edits)
    for tag, count in counts.items():
        if count > 1:
            report.add("tags of several edits", f"[{tag}] of {count}")
    for tag in places_of_tags(original, counts):
        report.add("tags that the original already has", f"[{tag}]")
    places = places_of_tags(exported, counts)
    for edit in edits:
        tag = edit["tag"]
        if edit["kind"] == "rename":
            wanted = [(edit["entity"], "Name")]
        elif edit["kind"] == "add_property":
            wanted = [(number, "Name") for number in edit["created"]]
        else:
            wanted = []
        if sorted(places.get(tag, [])) != sorted(wanted):
            report.add("tags not exactly where they belong", f"[{tag}] in {places.get(tag, [])}, wanted in {wanted}")


def check_renames(original, exported, edits, report):
    """A renamed object's name is its old one and the tags of its renames, in whatever order they came."""
    renames = collections.defaultdict(list)
    for edit in edits:
        if edit["kind"] == "rename":
            renames[edit["entity"]].append(edit)
    for number, of_object in renames.items():
        if number not in original or number not in exported:
            report.add("renamed entities that are not there", f"#{number}")
            continue
        old, new = original[number].Name or "", exported[number].Name or ""
        suffix = new[len(old) :].split()
        if not new.startswith(old) or sorted(suffix) != sorted(f"[{edit['tag']}]" for edit in of_object):
            report.add("names not as edited", f"#{number}: {old!r} -> {new!r}, {len(of_object)} renames")
        if new not in [edit["expected"] for edit in of_object]:
            report.add("names that no edit left", f"#{number}: {new!r}")


def location(entity):
    """The coordinates of a product in what it is placed in."""
    return entity.ObjectPlacement.RelativePlacement.Location.Coordinates


def frame(entity):
    """What a product is placed in and how it is turned there: a move, and the copies it makes, keep that."""
    placement = entity.ObjectPlacement
    axes = placement.RelativePlacement
    parts = (placement.PlacementRelTo, axes.Axis, axes.RefDirection)
    return placement.is_a(), axes.is_a(), plain(parts)


def check_moves(original, exported, edits, report):
    """A moved object is where all its moves together take it."""
    moves = collections.defaultdict(list)
    for edit in edits:
        if edit["kind"] == "move":
            moves[edit["entity"]].append(edit)
    for number, of_object in moves.items():
        if number not in original or number not in exported:
            report.add("moved entities that are not there", f"#{number}")
            continue
        try:
            start, end = location(original[number]), location(exported[number])
            if frame(original[number]) != frame(exported[number]):
                report.add("moved objects turned or placed in something else", str(exported[number]))
        except AttributeError:
            report.add("moved entities without a place", str(exported[number]))
            continue
        wanted = [sum(values) for values in zip(start, *(edit["delta"] for edit in of_object))]
        if not near(end, wanted):
            report.add("objects not where their moves take them", f"#{number}: from {start} to {end}, wanted {wanted}")
        if not any(near(end, edit["expected"]) for edit in of_object):
            report.add("places that no move left", f"#{number}: {end}")


def near(left, right):
    close = (math.isclose(a, b, rel_tol=1e-9, abs_tol=TOLERANCE) for a, b in zip(left, right))
    return len(left) == len(right) and all(close)


def check_used(original, exported, export, edits, report):
    """What a move created is used once, and all placements still lead where they led but for the moves."""
    for edit in edits:
        for number in edit["created"] if edit["kind"] == "move" else []:
            users = len(export.get_inverse(exported[number])) if number in exported else 0
            if users != 1:
                report.add("created coordinates not used exactly once", f"#{number} by {users}")
    touched = {number for edit in edits if edit["kind"] == "move" for number in [edit["entity"]]}
    for number, entity in original.items():
        if number in touched or number not in exported or not getattr(entity, "ObjectPlacement", None):
            continue
        try:
            before, after = location(entity), location(exported[number])
        except AttributeError:
            continue  # not placed by a point; compared attribute by attribute already
        if before != after:
            report.add("objects moved by no edit", f"#{number}: {before} -> {after}")


def check_properties(original, exported, edits, report):
    """A property set has its old properties first, then each added one once, with its value."""
    added = collections.defaultdict(list)
    for edit in edits:
        if edit["kind"] == "add_property":
            added[edit["entity"]].append(edit)
            check_property(exported, edit, report)
    for number, of_set in added.items():
        if number not in original or number not in exported:
            report.add("property sets that are not there", f"#{number}")
            continue
        old = [part.id() for part in original[number].HasProperties]
        new = [part.id() for part in exported[number].HasProperties]
        created = sorted(part for edit in of_set for part in edit["created"])
        if sorted(new) != sorted(old + created):
            report.add("property sets not as edited", f"#{number}: had {old}, was to get {created}, has {new}")


def check_property(exported, edit, report):
    if len(edit["created"]) != 1:
        report.add("properties not created exactly once", f"[{edit['tag']}]: {edit['created']}")
        return
    number = edit["created"][0]
    entity = exported.get(number)
    if entity is None:
        return  # reported with the created entities
    if not entity.is_a("IfcPropertySingleValue"):
        report.add("properties of another type", str(entity))
        return
    value = entity.NominalValue.wrappedValue if entity.NominalValue else None
    if (entity.Name, value) != (edit["name"], edit["expected"]):
        report.add("properties not as edited", f"{entity}, wanted {edit['name']!r} = {edit['expected']!r}")


def check_header(original, export, report):
    """The schema must be the same; the rest of the header may be told apart by a reader."""
    if original.schema_identifier != export.schema_identifier:
        report.add("schema", f"{original.schema_identifier} -> {export.schema_identifier}")
    for part in ("file_description", "file_name", "file_schema"):
        before, after = (str(getattr(model.header, part)) for model in (original, export))
        if before != after:
            report.add("header", f"{before} -> {after}")


def complaints(path, rules):
    """What the schema finds wrong with a file, without the numbers of lines. `None` if nothing here can tell."""
    try:
        import ifcopenshell.validate
    except ImportError as error:
        print(f"note: the schema is not checked: {error}")
        return None
    logger = ifcopenshell.validate.json_logger()
    # By its path, so that the file's syntax is checked too.
    try:
        ifcopenshell.validate.validate(path, logger, express_rules=rules)
    except ImportError as error:
        raise CannotCheck(f"ifcopenshell needs another module for this: {error}") from error
    keys = ("level", "type", "attribute", "message", "instance")
    return collections.Counter(" | ".join(str(s[key]) for key in keys if s.get(key)) for s in logger.statements)


def check_schema(original, export, rules, report):
    before = complaints(original, rules)
    after = complaints(export, rules)
    if before is None or after is None:
        return
    for text in (after - before).elements():
        report.add("new complaints of the schema", text)
    print(f"schema: {sum(before.values())} complaints about the original, {sum(after.values())} about the export")


def check(arguments):
    edits = load_edits(arguments.edits)
    first, second = open_model(arguments.original), open_model(arguments.export)
    report = Report(arguments.limit)
    original, exported = by_number(first), by_number(second)
    check_file(arguments.export, report)
    check_header(first, second, report)
    compared = check_untouched(original, exported, changed_attributes(edits, original), report)
    check_created(original, exported, edits, report)
    check_tags(original, exported, edits, report)
    check_renames(original, exported, edits, report)
    check_moves(original, exported, edits, report)
    check_used(original, exported, second, edits, report)
    check_properties(original, exported, edits, report)
    if not arguments.no_schema:
        check_schema(arguments.original, arguments.export, arguments.rules, report)
    kinds = collections.Counter(edit["kind"] for edit in edits)
    print(f"{compared} entities compared, {len(exported)} in the export, edits: {dict(kinds)}")
    report.show()
    print("FAILED" if report.problems else "OK: nothing lost, nothing doubled, nothing else changed")
    return 1 if report.problems else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("original", metavar="ORIGINAL", help="the IFC file that was imported")
    parser.add_argument("export", metavar="EXPORT", help="the IFC file that was exported")
    parser.add_argument("edits", metavar="EDITS.json", help="the edits made in between")
    parser.add_argument("--no-schema", action="store_true", help="do not check the schema")
    parser.add_argument("--rules", action="store_true", help="also check the schema's EXPRESS rules (slow; needs pytest)")
    parser.add_argument("--limit", type=int, default=10, help="problems to show of each sort (default: 10)")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    try:
        if ifcopenshell is None:
            raise CannotCheck("ifcopenshell is missing: python3 -m pip install ifcopenshell")
        return check(arguments)
    except CannotCheck as error:
        print(f"cannot check: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
