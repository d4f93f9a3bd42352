----------------------------- MODULE PeerFetch -----------------------------
(***************************************************************************)
(* Peer fetch within a site: rules 1 to 3 and 9 of docs/protocol.md.       *)
(*                                                                         *)
(* A redirector and its members, one page.  What the home does is seen     *)
(* from the redirector: its position rises with every change.  It can have *)
(* an image as of its own position (from above or its own memory) and sends*)
(* it in its stream.  The streams down to the members are asynchronous,    *)
(* and images between neighbours travel beside them.  What a member says   *)
(* to its redirector arrives at once: it only changes what the redirector  *)
(* does next.                                                              *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Members,        \* numbers from 1; member 1 begins with the page
    Objects,        \* numbers from 1
    Changes,        \* how many commits come down
    Fetches         \* how often each member may ask for the page: <<1, 2>>

(* Guards: TRUE is Thorp; each one FALSE is a weaker protocol. *)
CONSTANTS
    EvictionNumbers,    \* a notice older than the last entry is ignored
    CountsWhenShown,    \* a notice counts an image only once it is shown
    RisingNumbers,      \* an image older than the last one received is dropped
    RedirectInStream,   \* a redirect goes into the helper's ordered stream
    KeepsMessages,      \* a requester applies what its stream said since it asked
    WaitsForLabel,      \* an image ahead of its requester is shown when it gets there
    Attempts,           \* an image of another attempt is dropped
    EachItsOwnRedirect  \* nobody is joined onto a redirect

Hole == 99

VARIABLES
    log,        \* the changes that the redirector passed on
    dir,        \* its directory's entry for each member
    redirected, \* whose fetch is with a neighbour
    stream,     \* what is on its way down to each member
    beside,     \* images from neighbours on their way to it
    pos, page,
    pend,       \* what it keeps while it has asked
    got,        \* the highest entry number it received and showed
    asked       \* its attempts

site == <<log, dir, redirected>>
vars == <<log, dir, redirected, stream, beside, pos, page, pend, got, asked>>

NoPage == [has |-> FALSE, vals |-> [o \in Objects |-> Hole]]
NotAsking == [asking |-> FALSE, kept |-> <<>>, label |-> 0, num |-> 0, image |-> NoPage]

Init ==
    /\ log = <<>>
    /\ dir = [m \in Members |-> IF m = 1 THEN [in |-> TRUE, num |-> 1] ELSE [in |-> FALSE, num |-> 0]]
    /\ redirected = {}
    /\ stream = [m \in Members |-> <<>>]
    /\ beside = [m \in Members |-> {}]
    /\ pos = [m \in Members |-> 0]
    /\ page = [m \in Members |-> IF m = 1 THEN [has |-> TRUE, vals |-> [o \in Objects |-> 0]] ELSE NoPage]
    /\ pend = [m \in Members |-> NotAsking]
    /\ got = [m \in Members |-> IF m = 1 THEN 1 ELSE 0]
    /\ asked = [m \in Members |-> 0]

Max(a, b) == IF a > b THEN a ELSE b
Position == Len(log)
ValuesAt(p) == IF p = 0 THEN [o \in Objects |-> 0] ELSE log[p].after
Complete(pg) == pg.has /\ \A o \in Objects : pg.vals[o] # Hole

(* A kept value goes in, also into its hole; what was not kept is a hole.  *)
Apply(pg, s) ==
    IF ~pg.has \/ s.objs = {} THEN pg
    ELSE [pg EXCEPT !.vals = [o \in Objects |->
            IF o \notin s.objs THEN pg.vals[o]
            ELSE IF s.kept THEN s.pos ELSE Hole]]

RECURSIVE ApplyAll(_, _, _)
ApplyAll(pg, steps, label) ==
    IF steps = <<>> THEN pg
    ELSE ApplyAll(IF Head(steps).pos > label THEN Apply(pg, Head(steps)) ELSE pg,
                  Tail(steps), label)

(***************************************************************************)
(* The redirector                                                          *)
(***************************************************************************)

(* A change comes down: the step goes to everybody, with the values if     *)
(* they were kept, and the changed object to those who have the page.      *)
Change(o, kept) ==
    /\ Position < Changes
    /\ o = 1 \/ Position > 0  \* objects are alike
    /\ log' = Append(log, [after |-> [ValuesAt(Position) EXCEPT ![o] = Position + 1]])
    /\ stream' = [m \in Members |-> Append(stream[m],
            [type |-> "Step", pos |-> Position + 1, kept |-> kept /\ dir[m].in,
             objs |-> IF dir[m].in THEN {o} ELSE {}])]
    /\ UNCHANGED <<dir, redirected, beside, pos, page, pend, got, asked>>

Entered(m) == [in |-> TRUE, num |-> dir[m].num + 1]
InStream(m) == [type |-> "Image", num |-> dir[m].num + 1, image |-> [has |-> TRUE, vals |-> ValuesAt(Position)]]

MayAsk(m) ==
    /\ asked[m] < Fetches[m] /\ ~pend[m].asking /\ ~Complete(page[m])
Ask(m) ==
    /\ asked' = [asked EXCEPT ![m] = @ + 1]
    /\ pend' = [pend EXCEPT ![m] = [NotAsking EXCEPT !.asking = TRUE]]

(* Answered by the redirector: the requester is entered, then the image    *)
(* goes into its stream.                                                   *)
Fetch(m) ==
    /\ MayAsk(m)
    /\ Ask(m)
    /\ dir' = [dir EXCEPT ![m] = Entered(m)]
    /\ stream' = [stream EXCEPT ![m] = Append(@, InStream(m))]
    /\ UNCHANGED <<log, redirected, beside, pos, page, got>>

(* Redirected: the requester is entered, then the request goes into the    *)
(* helper's stream.                                                        *)
Redirect(m, h) ==
    /\ m # h /\ dir[h].in
    /\ MayAsk(m)
    /\ Ask(m)
    /\ dir' = [dir EXCEPT ![m] = Entered(m)]
    /\ redirected' = redirected \cup {m}
    /\ LET message == [type |-> "Redirect", who |-> {[to |-> m, num |-> dir[m].num + 1, attempt |-> asked[m] + 1]}]
       IN stream' = [stream EXCEPT ![h] =
            IF RedirectInStream THEN Append(@, message) ELSE <<message>> \o @]
    /\ UNCHANGED <<log, beside, pos, page, got>>

(* Only without the guard: a second requester is joined onto a redirect.   *)
Join(m, h, i) ==
    /\ ~EachItsOwnRedirect /\ m # h
    /\ MayAsk(m)
    /\ stream[h][i].type = "Redirect"
    /\ Ask(m)
    /\ dir' = [dir EXCEPT ![m] = Entered(m)]
    /\ redirected' = redirected \cup {m}
    /\ stream' = [stream EXCEPT ![h][i].who =
            @ \cup {[to |-> m, num |-> dir[m].num + 1, attempt |-> asked[m] + 1]}]
    /\ UNCHANGED <<log, beside, pos, page, got>>

(* The helper took too long: the answer comes in the stream instead.       *)
Late(m) ==
    /\ m \in redirected
    /\ redirected' = redirected \ {m}
    /\ dir' = [dir EXCEPT ![m] = Entered(m)]
    /\ stream' = [stream EXCEPT ![m] = Append(@, InStream(m))]
    /\ UNCHANGED <<log, beside, pos, page, pend, got, asked>>

(***************************************************************************)
(* A helper                                                                *)
(***************************************************************************)
Take(m, type) == stream[m] # <<>> /\ Head(stream[m]).type = type

(* Its newest image, labelled with its position and the attempt.           *)
Help(h) ==
    /\ Take(h, "Redirect")
    /\ Complete(page[h])
    /\ stream' = [stream EXCEPT ![h] = Tail(@)]
    /\ beside' = [m \in Members |-> beside[m] \cup
            {[attempt |-> w.attempt, num |-> w.num, label |-> pos[h], image |-> page[h]] :
                w \in {w \in Head(stream[h]).who : w.to = m}}]
    /\ UNCHANGED <<site, pos, page, pend, got, asked>>

(* Or it says that it has none: the redirector answers those who wait.     *)
HelpNot(h) ==
    /\ Take(h, "Redirect")
    /\ ~Complete(page[h])
    /\ LET them == {w.to : w \in {w \in Head(stream[h]).who : w.to \in redirected /\ w.attempt = asked[w.to]}}
       IN /\ redirected' = redirected \ them
          /\ dir' = [m \in Members |-> IF m \in them THEN Entered(m) ELSE dir[m]]
          /\ stream' = [m \in Members |->
                IF m = h THEN Tail(stream[m])
                ELSE IF m \in them THEN Append(stream[m], InStream(m))
                ELSE stream[m]]
    /\ UNCHANGED <<log, beside, pos, page, pend, got, asked>>

(***************************************************************************)
(* A requester                                                             *)
(***************************************************************************)

(* Everything of one position, applied as one.  What is said while it has  *)
(* asked is kept; an image that was ahead is shown when its position is    *)
(* reached.                                                                *)
Step(m) ==
    /\ Take(m, "Step")
    /\ stream' = [stream EXCEPT ![m] = Tail(@)]
    /\ LET s == Head(stream[m])
           p == pend[m]
           reached == p.image.has /\ p.label = s.pos
       IN /\ pos' = [pos EXCEPT ![m] = s.pos]
          /\ page' = [page EXCEPT ![m] = IF reached THEN p.image ELSE Apply(@, s)]
          /\ pend' = [pend EXCEPT ![m] =
                IF reached THEN NotAsking
                ELSE IF p.asking /\ ~p.image.has /\ s.objs # {} THEN [p EXCEPT !.kept = Append(@, s)]
                ELSE p]
          /\ got' = [got EXCEPT ![m] = IF reached THEN Max(@, p.num) ELSE @]
    /\ UNCHANGED <<site, beside, asked>>

(* An image in the stream is the page as of the member's own position.  A  *)
(* neighbour's image may have overtaken it, and have been evicted since    *)
(* under a higher number: then nothing that changes the page comes after it.*)
Image(m) ==
    /\ Take(m, "Image")
    /\ stream' = [stream EXCEPT ![m] = Tail(@)]
    /\ LET i == Head(stream[m])
       IN IF RisingNumbers /\ i.num < got[m] THEN UNCHANGED <<page, pend, got>>
          ELSE /\ page' = [page EXCEPT ![m] = i.image]
               /\ pend' = [pend EXCEPT ![m] = NotAsking]
               /\ got' = [got EXCEPT ![m] = Max(@, i.num)]
    /\ UNCHANGED <<site, beside, pos, asked>>

(* A neighbour's image, beside the stream: what was kept above its label   *)
(* is applied; one that is ahead waits; another attempt's is dropped.      *)
Peer(m, img) ==
    /\ beside' = [beside EXCEPT ![m] = @ \ {img}]
    /\ IF pend[m].asking /\ ~pend[m].image.has /\ (Attempts => img.attempt = asked[m])
       THEN /\ redirected' = redirected \ {m}  \* its next message says so
            /\ got' = [got EXCEPT ![m] =
                    IF img.label <= pos[m] \/ ~WaitsForLabel \/ ~CountsWhenShown
                    THEN Max(@, img.num) ELSE @]
            /\ IF img.label <= pos[m] \/ ~WaitsForLabel
               THEN /\ page' = [page EXCEPT ![m] =
                            ApplyAll(img.image, IF KeepsMessages THEN pend[m].kept ELSE <<>>, img.label)]
                    /\ pend' = [pend EXCEPT ![m] = NotAsking]
               ELSE /\ pend' = [pend EXCEPT ![m] = [@ EXCEPT !.image = img.image, !.label = img.label,
                                                               !.num = img.num, !.kept = <<>>]]
                    /\ UNCHANGED page
       ELSE UNCHANGED <<got, redirected, page, pend>>
    /\ UNCHANGED <<log, dir, stream, pos, asked>>

(* The notice carries the highest number shown; a later entry stands.  An  *)
(* image that waits for its position is not given up with the old copy.    *)
Evict(m) ==
    /\ page[m].has
    /\ page' = [page EXCEPT ![m] = NoPage]
    /\ dir' = IF EvictionNumbers /\ got[m] < dir[m].num THEN dir
              ELSE [dir EXCEPT ![m].in = FALSE]
    /\ UNCHANGED <<log, redirected, stream, beside, pos, pend, got, asked>>

Next ==
    \/ \E o \in Objects, kept \in BOOLEAN : Change(o, kept)
    \/ \E m \in Members : Fetch(m)
    \/ \E m, h \in Members : Redirect(m, h)
    \/ \E m, h \in Members : \E i \in 1..Len(stream[h]) : Join(m, h, i)
    \/ \E m \in Members : Late(m)
    \/ \E h \in Members : Help(h)
    \/ \E h \in Members : HelpNot(h)
    \/ \E m \in Members : Step(m)
    \/ \E m \in Members : Image(m)
    \/ \E m \in Members : \E img \in beside[m] : Peer(m, img)
    \/ \E m \in Members : Evict(m)

Spec == Init /\ [][Next]_vars

(* Rule 3: what a member shows is committed, as of its own position.       *)
Validity ==
    \A m \in Members : page[m].has =>
        \A o \in Objects : page[m].vals[o] \in {Hole, ValuesAt(pos[m])[o]}

(* Rule 2: a directory is never less than the truth.                       *)
Copies == \A m \in Members : page[m].has \/ pend[m].asking => dir[m].in
=============================================================================
