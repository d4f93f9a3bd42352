----------------------------- MODULE SiteCommit -----------------------------
(***************************************************************************)
(* Commits of a site: rules 1 to 4 and 6 to 8 of docs/protocol.md, copies, *)
(* evidence, commit, solo commit and peer update; without failures.        *)
(*                                                                         *)
(* A home, a redirector and its members, one page.  The value of an object *)
(* is the position of the commit that wrote it.  The wide-area edge is     *)
(* asynchronous both ways.  Within the site nothing takes time: what the   *)
(* redirector delivers, its members apply in the same step, so all of them *)
(* stand at one position (PeerFetch.tla has the streams in a site).  What a *)
(* slow member delays is the group's acknowledgement, and that is here.    *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Members,        \* numbers from 1
    Writers,        \* those of them who write
    Objects,        \* numbers from 1
    Commits,        \* how many commits the home takes in all
    Elsewhere,      \* how many of these may be other sites'
    Fetches,        \* how often each member may ask for the page
    KeptIsLost,     \* the redirector may have dropped the values it kept
    Acks,           \* acknowledgements rise, and the home trims by them
    Validation      \* "evidence", or the variant: "acknowledgements"

(* Guards: TRUE is Thorp; each one FALSE is a weaker protocol. *)
CONSTANTS
    EvictionNumbers,    \* a notice older than the last entry is ignored
    SubtreeCopies,      \* a redirector gives up only what nobody below has
    FrozenEvidence      \* a notice sent while a transaction runs freezes its evidence

ASSUME Validation \in {"evidence", "acknowledgements"}

Hole == 99          \* the value of an invalidated object
Running == 98       \* evidence that is not frozen: the member's position
Nobody == 0         \* the member of another site

VARIABLES
    log,        \* the home's commits; the position is the length
    copy,       \* its directory's entry for the site
    acked,      \* the position that the site has acknowledged
    up, down,   \* the wide-area edge
    pos,        \* the position of the site
    acking,     \* what it has acknowledged
    had,        \* the number of its entry as of its last image, 0: nothing
    waiting,    \* the members who wait for the image that was asked for
    asked,      \* how often each member asked
    page,       \* each member's page
    held,       \* its notice that waits for a transaction
    txn         \* its transaction

home == <<log, copy, acked>>
cache == <<page, held, txn>>
vars == <<log, copy, acked, up, down, pos, acking, had, waiting, asked, page, held, txn>>

NoPage == [has |-> FALSE, vals |-> [o \in Objects |-> Hole], ver |-> 0]
NoTxn == [is |-> "idle", reads |-> {}, evidence |-> Running]
Ended == [is |-> "ended", reads |-> {}, evidence |-> Running]
Waits == [is |-> "waiting", reads |-> {}, evidence |-> Running]

Init ==
    /\ log = <<>>
    /\ copy = [in |-> FALSE, num |-> 0]
    /\ acked = 0
    /\ up = <<>>
    /\ down = <<>>
    /\ pos = 0
    /\ acking = 0
    /\ had = 0
    /\ waiting = {}
    /\ asked = [m \in Members |-> 0]
    /\ page = [m \in Members |-> NoPage]
    /\ held = [m \in Members |-> FALSE]
    /\ txn = [m \in Members |-> NoTxn]

Position == Len(log)
ImageAt(p) == IF p = 0 THEN [o \in Objects |-> 0] ELSE log[p].after
Current == ImageAt(Position)
Objs(reads) == {r.obj : r \in reads}
EvidenceOf(m) == IF txn[m].evidence = Running THEN pos ELSE txn[m].evidence
Complete(pg) == pg.has /\ \A o \in Objects : pg.vals[o] # Hole

(* Members and objects are alike: 1 is the first to act, or be acted on.   *)
First(m) == m = 1 \/ asked[1] > 0 \/ Writers # Members
Alike(o) == o = 1 \/ Position > 0 \/ \E m \in Members : txn[m].is # "idle"

(***************************************************************************)
(* A member                                                                *)
(***************************************************************************)

(* Requests in flight for one page are joined; a refetch cancels a notice  *)
(* that was held back.                                                     *)
Fetch(m) ==
    /\ asked[m] < Fetches /\ m \notin waiting /\ First(m)
    /\ ~Complete(page[m])
    /\ asked' = [asked EXCEPT ![m] = @ + 1]
    /\ held' = [held EXCEPT ![m] = FALSE]
    /\ waiting' = waiting \cup {m}
    /\ up' = IF waiting = {} THEN Append(up, [type |-> "Fetch"]) ELSE up
    /\ UNCHANGED <<home, down, pos, acking, had, page, txn>>

(* A page is dropped.  While a transaction has read it the notice waits,   *)
(* so that what changes it still comes and dooms the transaction.          *)
Evict(m) ==
    /\ page[m].has
    /\ page' = [page EXCEPT ![m] = NoPage]
    /\ held' = [held EXCEPT ![m] = txn[m].is = "running"]
    /\ UNCHANGED <<home, up, down, pos, acking, had, waiting, asked, txn>>

(* The limit of notices held back: it is sent, and the evidence freezes.   *)
Freeze(m) ==
    /\ held[m]
    /\ held' = [held EXCEPT ![m] = FALSE]
    /\ txn' = IF FrozenEvidence /\ txn[m].evidence = Running
              THEN [txn EXCEPT ![m].evidence = pos] ELSE txn
    /\ UNCHANGED <<home, up, down, pos, acking, had, waiting, asked, page>>

(* A transaction whose evidence is frozen is doomed by anything newer.     *)
Read(m, o) ==
    /\ page[m].has /\ page[m].vals[o] # Hole
    /\ txn[m].is \in {"idle", "running"} /\ o \notin Objs(txn[m].reads) /\ Alike(o)
    /\ IF txn[m].evidence # Running /\ page[m].ver > txn[m].evidence
       THEN txn' = [txn EXCEPT ![m] = Ended]
       ELSE txn' = [txn EXCEPT ![m].is = "running",
                               ![m].reads = @ \cup {[obj |-> o, val |-> page[m].vals[o]]}]
    /\ UNCHANGED <<home, up, down, pos, acking, had, waiting, asked, page, held>>

(* A transaction that writes asks the home.  One that only read needs no   *)
(* message: `Evidence` below says that it could commit in every state.     *)
Commit(m, o) ==
    /\ m \in Writers /\ txn[m].is = "running"
    /\ Position < Commits  \* later ones would never be taken
    /\ up' = Append(up, [type |-> "Commit", by |-> m, wrote |-> o,
                         reads |-> txn[m].reads, evidence |-> EvidenceOf(m)])
    /\ txn' = [txn EXCEPT ![m] = Waits]
    /\ held' = [held EXCEPT ![m] = FALSE]
    /\ UNCHANGED <<home, down, pos, acking, had, waiting, asked, page>>

(***************************************************************************)
(* The redirector, and its members with it                                 *)
(***************************************************************************)
TakeDown(type) == down # <<>> /\ Head(down).type = type /\ down' = Tail(down)

(* Everything of one position, applied as one (rule 1): a value that was   *)
(* kept goes in, also into its hole, and what was not kept is a hole (rule *)
(* 8 and record 0005).                                                     *)
(* A transaction that read it is doomed (rule 4); the own commit is over.  *)
Changed(pg, s, kept) ==
    [pg EXCEPT !.ver = s.pos,
               !.vals = [o \in Objects |->
                    IF o \notin s.objs THEN pg.vals[o]
                    ELSE IF kept THEN s.pos ELSE Hole]]

Step(kept) ==
    /\ TakeDown("Step")
    /\ LET s == Head(down)
           over(m) == s.by = m \/ (txn[m].is = "running" /\ Objs(txn[m].reads) \cap s.objs # {})
       IN /\ kept => s.by # Nobody
          /\ KeptIsLost \/ kept \/ s.by = Nobody
          /\ pos' = s.pos
          /\ page' = [m \in Members |->
                IF page[m].has /\ s.objs # {} THEN Changed(page[m], s, kept) ELSE page[m]]
          /\ txn' = [m \in Members |-> IF over(m) THEN Ended ELSE txn[m]]
          /\ held' = [m \in Members |-> held[m] /\ ~over(m)]
    /\ UNCHANGED <<home, up, acking, had, waiting, asked>>

(* An image in the stream is the page as of the site's own position.       *)
Image ==
    /\ TakeDown("Image")
    /\ had' = Head(down).num
    /\ page' = [m \in Members |-> IF m \in waiting THEN Head(down).image ELSE page[m]]
    /\ waiting' = {}
    /\ UNCHANGED <<home, up, pos, acking, asked, held, txn>>

Told ==
    /\ TakeDown("Told")
    /\ txn' = [txn EXCEPT ![Head(down).by] = Ended]
    /\ UNCHANGED <<home, up, pos, acking, had, waiting, asked, page, held>>

(* The redirector gives the page up above, with the number that it had:    *)
(* only if nobody below has it, or has a notice held back for it (rule 2). *)
GiveUp ==
    /\ had > 0
    /\ SubtreeCopies => \A m \in Members : ~page[m].has /\ ~held[m]
    /\ had' = 0
    /\ up' = Append(up, [type |-> "Evict", num |-> had])
    /\ UNCHANGED <<home, down, pos, acking, waiting, asked, cache>>

(* The group's acknowledgement, when the slowest member has said so.       *)
Ack ==
    /\ Acks /\ acking < pos
    /\ acking' = pos
    /\ up' = Append(up, [type |-> "Ack", pos |-> pos])
    /\ UNCHANGED <<home, down, pos, had, waiting, asked, cache>>

(***************************************************************************)
(* The home                                                                *)
(***************************************************************************)
TakeUp(type) == up # <<>> /\ Head(up).type = type /\ up' = Tail(up)

(* A fetch arrives: the site is entered, then the image is taken.          *)
Enter ==
    /\ TakeUp("Fetch")
    /\ copy' = [in |-> TRUE, num |-> copy.num + 1]
    /\ down' = Append(down, [type |-> "Image", num |-> copy.num + 1,
                             image |-> [has |-> TRUE, ver |-> Position, vals |-> Current]])
    /\ UNCHANGED <<log, acked, pos, acking, had, waiting, asked, cache>>

Strike ==
    /\ TakeUp("Evict")
    /\ copy' = IF EvictionNumbers /\ Head(up).num < copy.num THEN copy
               ELSE [copy EXCEPT !.in = FALSE]
    /\ UNCHANGED <<log, acked, down, pos, acking, had, waiting, asked, cache>>

(* A commit is one step for each child: the changed objects if it has the  *)
(* page, and the position in any case.                                     *)
Take(by, wrote, reads) ==
    /\ log' = Append(log,
            [by |-> by, wrote |-> wrote, told |-> copy.in,
             after |-> [Current EXCEPT ![wrote] = Position + 1],
             serial |-> \A r \in reads : r.val = Current[r.obj]])
    /\ down' = Append(down, [type |-> "Step", pos |-> Position + 1, by |-> by,
                             objs |-> IF copy.in THEN {wrote} ELSE {}])

(* Rule 6: the home knows the objects down to its floor, which is what was *)
(* acknowledged; below it the page's version decides.  Rule 7: no more.    *)
Stale(c) == \E o \in Objs(c.reads) : Current[o] > c.evidence
Unacknowledged == {log[i].wrote : i \in {i \in (acked + 1)..Position : log[i].told}}
Valid(c) ==
    IF Validation = "acknowledgements" THEN Objs(c.reads) \cap Unacknowledged = {}
    ELSE IF c.evidence >= acked THEN ~Stale(c)
    ELSE Position <= c.evidence

Accept ==
    /\ Position < Commits
    /\ TakeUp("Commit")
    /\ Valid(Head(up))
    /\ Take(Head(up).by, Head(up).wrote, Head(up).reads)
    /\ UNCHANGED <<copy, acked, pos, acking, had, waiting, asked, cache>>

Refuse ==
    /\ TakeUp("Commit")
    /\ ~Valid(Head(up))
    /\ down' = Append(down,
            [type |-> "Told", by |-> Head(up).by,
             justly |-> Stale(Head(up)) \/ (Validation = "evidence" /\ Head(up).evidence < acked)])
    /\ UNCHANGED <<home, pos, acking, had, waiting, asked, cache>>

CommitElsewhere(o) ==
    /\ Position < Commits /\ Alike(o)
    /\ Cardinality({i \in 1..Position : log[i].by = Nobody}) < Elsewhere
    /\ Take(Nobody, o, {})
    /\ UNCHANGED <<copy, acked, up, pos, acking, had, waiting, asked, cache>>

Acknowledged ==
    /\ TakeUp("Ack")
    /\ acked' = Head(up).pos
    /\ UNCHANGED <<log, copy, down, pos, acking, had, waiting, asked, cache>>

Next ==
    \/ \E m \in Members : Fetch(m)
    \/ \E m \in Members : Evict(m)
    \/ \E m \in Members : Freeze(m)
    \/ \E m \in Members, o \in Objects : Read(m, o)
    \/ \E m \in Members, o \in Objects : Commit(m, o)
    \/ \E kept \in BOOLEAN : Step(kept)
    \/ Image
    \/ Told
    \/ GiveUp
    \/ Ack
    \/ Enter
    \/ Strike
    \/ Accept
    \/ Refuse
    \/ \E o \in Objects : CommitElsewhere(o)
    \/ Acknowledged

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold                                                          *)
(***************************************************************************)

(* Rule 3: what a member shows is committed, as of its own position.       *)
Validity ==
    \A m \in Members : page[m].has =>
        \A o \in Objects : page[m].vals[o] \in {Hole, ImageAt(pos)[o]}

(* Rule 6: every commit read what was current just before its position, so *)
(* the positions are a serial order and no update is lost.                 *)
Serializable == \A i \in 1..Position : log[i].serial

(* Rules 4 and 5: all reads of a running transaction are current at its    *)
(* evidence, so if it only reads it may commit there without a message.    *)
Evidence ==
    \A m \in Members : txn[m].is = "running" =>
        \A r \in txn[m].reads : r.val = ImageAt(EvidenceOf(m))[r.obj]

(* Rule 2: the home's directory is never less than the truth.              *)
Copies == \A m \in Members : page[m].has \/ held[m] => copy.in

(* Rule 7: a refusal has a reason of its own, never a neighbour's silence. *)
SoloCommit == \A i \in 1..Len(down) : down[i].type = "Told" => down[i].justly
=============================================================================
