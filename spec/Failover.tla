------------------------------ MODULE Failover ------------------------------
(***************************************************************************)
(* A redirector is lost, or believed to be: rule 13 of docs/protocol.md,   *)
(* with the epochs of rule 1 and the remembered answers of rule 11.        *)
(*                                                                         *)
(* Members begin at redirector 1, with every page, and may turn *)
(* to redirector 2 at any time, whether or not 1 has crashed: a split      *)
(* looks the same.  They report their pages, the new redirector asks the   *)
(* home what became of each, and the answers come down in its stream.      *)
(*                                                                         *)
(* A page holds one object, whose value is the position of the commit that *)
(* wrote it.  Redirectors keep every value, so steps are updates.  The     *)
(* wide-area streams are asynchronous, and a commit request, once sent,    *)
(* may arrive at any time or never, also after its redirector's crash;     *)
(* a redirector and its members speak at once.                             *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Members,
    Pages,
    Commits,
    Elsewhere,
    Transactions    \* whether members run one each, or only keep pages

(* Guards: TRUE is Thorp. *)
CONSTANTS
    Epochs,             \* what comes from a redirector that was left is dropped
    HoldsPosition,      \* the position waits until every page is resynchronised
    EachItsVersion,     \* each member's version is compared on its own
    ReportsReads,       \* pages that only a running transaction read are reported
    ForwardsAnswers     \* a remembered answer is forwarded, never applied

Sites == {1, 2}
Nobody == 0
Nothing == 0

VARIABLES
    log,        \* the home's commits
    entry,      \* its directory: the pages of each site
    flying,     \* commit requests on their way, or lost
    down,       \* the stream to each redirector
    alive,      \* redirector 1
    at,         \* the position of each redirector
    dir,        \* its directory: the pages of each member
    parent, pos, page,
    unsure,     \* pages that are not resynchronised
    want,       \* the page asked for
    txn

vars == <<log, entry, flying, down, alive, at, dir, parent, pos, page, unsure, want, txn>>

NoPage == [has |-> FALSE, val |-> 0]
NoTxn == [is |-> "idle", reads |-> {}]
Ended == [is |-> "ended", reads |-> {}]

Init ==
    /\ log = <<>>
    /\ entry = [r \in Sites |-> IF r = 1 THEN Pages ELSE {}]
    /\ flying = {}
    /\ down = [r \in Sites |-> <<>>]
    /\ alive = TRUE
    /\ at = [r \in Sites |-> 0]
    /\ dir = [r \in Sites |-> [m \in Members |-> entry[r]]]
    /\ parent = [m \in Members |-> 1]
    /\ pos = [m \in Members |-> 0]
    /\ page = [m \in Members |-> [p \in Pages |-> [has |-> TRUE, val |-> 0]]]
    /\ unsure = [m \in Members |-> {}]
    /\ want = [m \in Members |-> Nothing]
    /\ txn = [m \in Members |-> NoTxn]

Max(S) == CHOOSE n \in S : \A k \in S : k <= n
Min(S) == CHOOSE n \in S : \A k \in S : n <= k
Position == Len(log)
ValueAt(p, n) == IF n = 0 THEN 0 ELSE log[n].after[p]
Value(p) == ValueAt(p, Position)
Up(r) == r = 2 \/ alive

ReadsOf(m) == IF txn[m].is = "running" THEN {r.page : r \in txn[m].reads} ELSE {}
ReadOf(m, p) == (CHOOSE r \in txn[m].reads : r.page = p).val
Cached(m) == {p \in Pages : page[m][p].has}

(* Who hears a redirector: its members; without epochs also who left it.   *)
Hears(r, m) == parent[m] = r \/ (~Epochs /\ parent[m] > r)

(* A member reads nothing while a page of it is not resynchronised: what   *)
(* is resynchronised already may be newer than its position, which waits.  *)
Shows(m) == unsure[m] = {}

(* Pages are alike: 1 is the first to be read or written. *)
Alike(p) == p = 1 \/ Position > 0 \/ \E m \in Members : txn[m].is # "idle"

(***************************************************************************)
(* The home                                                                *)
(***************************************************************************)
Tell(r, message) == [down EXCEPT ![r] = Append(@, message)]

Take(by, wrote, reads) ==
    /\ log' = Append(log,
            [by |-> by, wrote |-> wrote,
             after |-> [p \in Pages |-> IF p = wrote THEN Position + 1 ELSE Value(p)],
             serial |-> \A r \in reads : r.val = Value(r.page)])
    /\ down' = [r \in Sites |->
            IF Up(r) THEN Append(down[r],
                [type |-> "Step", pos |-> Position + 1, by |-> by,
                 pages |-> {wrote} \cap entry[r]])
            ELSE down[r]]

CommitElsewhere(p) ==
    /\ Position < Commits
    /\ Cardinality({i \in 1..Position : log[i].by = Nobody}) < Elsewhere
    /\ Alike(p)
    /\ Take(Nobody, p, {})
    /\ UNCHANGED <<entry, flying, alive, at, dir, parent, pos, page, unsure, want, txn>>

Outcome(m) == {i \in 1..Position : log[i].by = m}

Accept(request) ==
    /\ Position < Commits
    /\ Outcome(request.by) = {}
    /\ \A r \in request.reads : Value(r.page) <= request.evidence
    /\ Take(request.by, request.wrote, request.reads)
    /\ flying' = flying \ {request}
    /\ UNCHANGED <<entry, alive, at, dir, parent, pos, page, unsure, want, txn>>

(* The refusal ends the id, so its copies on the way mean nothing more.    *)
Refuse(request) ==
    /\ Outcome(request.by) = {}
    /\ \E r \in request.reads : Value(r.page) > request.evidence
    /\ Up(request.through)
    /\ down' = Tell(request.through, [type |-> "Told", to |-> request.by, committed |-> Nothing])
    /\ flying' = {f \in flying : f.by # request.by}
    /\ UNCHANGED <<log, entry, alive, at, dir, parent, pos, page, unsure, want, txn>>

(* The second of two requests with one id: the answer is remembered.       *)
Remember(request) ==
    /\ Outcome(request.by) # {}
    /\ flying' = flying \ {request}
    /\ down' = IF Up(request.through)
               THEN Tell(request.through, [type |-> "Told", to |-> request.by,
                                           committed |-> Max(Outcome(request.by))])
               ELSE down
    /\ UNCHANGED <<log, entry, alive, at, dir, parent, pos, page, unsure, want, txn>>

(***************************************************************************)
(* Redirectors, each with its members                                      *)
(***************************************************************************)
TakeDown(r, type) ==
    /\ down[r] # <<>> /\ Head(down[r]).type = type
    /\ down' = [down EXCEPT ![r] = Tail(@)]

(* The position of a member goes with its parent's, never back, and not    *)
(* while a page of it is not resynchronised.                               *)
Moved(m, n, still) == IF still # {} /\ HoldsPosition THEN pos[m] ELSE Max({pos[m], n})

(* A change that comes: newer than the page's version it is put in, and    *)
(* the transaction that read the page is doomed.                           *)
Step(r) ==
    /\ TakeDown(r, "Step")
    /\ LET s == Head(down[r])
           concerned(m) == IF Hears(r, m) THEN s.pages \cap dir[r][m] ELSE {}
       IN /\ at' = [at EXCEPT ![r] = s.pos]
          /\ pos' = [m \in Members |-> IF Hears(r, m) THEN Moved(m, s.pos, unsure[m]) ELSE pos[m]]
          /\ page' = [m \in Members |-> [p \in Pages |->
                IF p \in concerned(m) /\ page[m][p].has /\ s.pos > page[m][p].val
                THEN [page[m][p] EXCEPT !.val = s.pos] ELSE page[m][p]]]
          /\ txn' = [m \in Members |->
                IF \/ s.by = m /\ Hears(r, m)
                   \/ \E p \in concerned(m) \cap ReadsOf(m) : s.pos > ReadOf(m, p)
                THEN Ended ELSE txn[m]]
    /\ UNCHANGED <<log, entry, flying, alive, dir, parent, unsure, want>>

Image(r) ==
    /\ TakeDown(r, "Image")
    /\ LET i == Head(down[r])
       IN IF Hears(r, i.to)
          THEN /\ page' = [page EXCEPT ![i.to][i.page] = [has |-> TRUE, val |-> i.val]]
               /\ want' = [want EXCEPT ![i.to] = Nothing]
          ELSE UNCHANGED <<page, want>>
    /\ UNCHANGED <<log, entry, flying, alive, at, dir, parent, pos, unsure, txn>>

(* One page of one member is resynchronised: if it has changed since the   *)
(* version reported it is invalidated, and dooms who read it.              *)
Resynchronised(r) ==
    /\ TakeDown(r, "Resynchronised")
    /\ LET a == Head(down[r])
           m == a.of
           still == unsure[m] \ {a.page}
       IN IF parent[m] # r THEN UNCHANGED <<page, unsure, pos, txn>>
          ELSE /\ unsure' = [unsure EXCEPT ![m] = still]
               /\ pos' = [pos EXCEPT ![m] = Moved(m, at[r], still)]
               /\ page' = [page EXCEPT ![m][a.page] = IF a.changed THEN NoPage ELSE @]
               /\ txn' = [txn EXCEPT ![m] = IF a.changed /\ a.page \in ReadsOf(m) THEN Ended ELSE @]
    /\ UNCHANGED <<log, entry, flying, alive, at, dir, parent, want>>

(* An answer without a delivery.  A remembered one fills nothing: what the *)
(* member wrote long ago may have been overwritten since.                  *)
Told(r) ==
    /\ TakeDown(r, "Told")
    /\ LET t == Head(down[r])
           m == t.to
       IN IF parent[m] # r THEN UNCHANGED <<txn, page>>
          ELSE /\ txn' = [txn EXCEPT ![m] = Ended]
               /\ page' = IF ForwardsAnswers \/ t.committed = Nothing THEN page
                          ELSE [page EXCEPT ![m][log[t.committed].wrote].val =
                                IF page[m][log[t.committed].wrote].has THEN t.committed ELSE @]
    /\ UNCHANGED <<log, entry, flying, alive, at, dir, parent, pos, unsure, want>>

Crash ==
    /\ alive
    /\ alive' = FALSE
    /\ down' = [down EXCEPT ![1] = <<>>]
    /\ UNCHANGED <<log, entry, flying, at, dir, parent, pos, page, unsure, want, txn>>

(***************************************************************************)
(* A member                                                                *)
(***************************************************************************)
Fetch(m, p) ==
    /\ Up(parent[m])
    /\ want[m] = Nothing /\ unsure[m] = {} /\ ~page[m][p].has
    /\ want' = [want EXCEPT ![m] = p]
    /\ dir' = [dir EXCEPT ![parent[m]][m] = @ \cup {p}]
    /\ entry' = [entry EXCEPT ![parent[m]] = @ \cup {p}]
    /\ down' = Tell(parent[m], [type |-> "Image", to |-> m, page |-> p, val |-> Value(p)])
    /\ UNCHANGED <<log, flying, alive, at, parent, pos, page, unsure, txn>>

(* A page that a running transaction read is dropped, and its notice held  *)
(* back; what nobody reads any more is of no interest here.                *)
Evict(m, p) ==
    /\ page[m][p].has /\ p \in ReadsOf(m)
    /\ page' = [page EXCEPT ![m][p] = NoPage]
    /\ UNCHANGED <<log, entry, flying, down, alive, at, dir, parent, pos, unsure, want, txn>>

Read(m, p) ==
    /\ Shows(m)
    /\ page[m][p].has
    /\ txn[m].is \in {"idle", "running"}
    /\ Transactions /\ p \notin ReadsOf(m) /\ Alike(p)
    /\ txn' = [txn EXCEPT ![m] = [is |-> "running", reads |-> @.reads \cup {[page |-> p, val |-> page[m][p].val]}]]
    /\ UNCHANGED <<log, entry, flying, down, alive, at, dir, parent, pos, page, unsure, want>>

Commit(m, p) ==
    /\ txn[m].is = "running"
    /\ Position < Commits  \* later ones would never be taken
    /\ flying' = flying \cup {[by |-> m, through |-> parent[m], wrote |-> p,
                               reads |-> txn[m].reads, evidence |-> pos[m]]}
    /\ txn' = [txn EXCEPT ![m].is = "waiting"]
    /\ UNCHANGED <<log, entry, down, alive, at, dir, parent, pos, page, unsure, want>>

(* A member turns to the other redirector and reports: every page that it  *)
(* has, and every page that its transaction read, with their versions.     *)
(* The new redirector asks the home about each member's version.           *)
Reported(m) == Cached(m) \cup (IF ReportsReads THEN ReadsOf(m) ELSE {})
VersionOf(m, p) == IF page[m][p].has THEN page[m][p].val ELSE ReadOf(m, p)

RECURSIVE Answers(_, _)
Answers(m, pages) ==
    IF pages = {} THEN <<>>
    ELSE LET p == Min(pages)
             others == {k \in Members : parent[k] = 2 /\ page[k][p].has}
             version == IF EachItsVersion THEN VersionOf(m, p)
                        ELSE Max({VersionOf(m, p)} \cup {page[k][p].val : k \in others})
         IN <<[type |-> "Resynchronised", of |-> m, page |-> p, changed |-> Value(p) > version]>>
            \o Answers(m, pages \ {p})

(* Once nobody hears redirector 1, what it still has is of no interest.    *)
Left(m) == Epochs /\ \A k \in Members \ {m} : parent[k] = 2

Turn(m) ==
    /\ parent[m] = 1
    /\ m = 1 \/ parent[1] = 2  \* members are alike: 1 is the first to turn
    /\ parent' = [parent EXCEPT ![m] = 2]
    /\ want' = [want EXCEPT ![m] = Nothing]
    /\ dir' = [r \in Sites |-> [k \in Members |->
            IF r = 2 /\ k = m THEN Reported(m)
            ELSE IF r = 1 /\ Left(m) THEN {} ELSE dir[r][k]]]
    /\ entry' = [entry EXCEPT ![1] = IF Left(m) THEN {} ELSE @, ![2] = @ \cup Reported(m)]
    /\ at' = [at EXCEPT ![1] = IF Left(m) THEN 0 ELSE @]
    /\ alive' = (alive /\ ~Left(m))
    /\ unsure' = [unsure EXCEPT ![m] = Reported(m)]
    /\ pos' = IF Reported(m) = {} THEN [pos EXCEPT ![m] = Max({@, at[2]})] ELSE pos
    /\ down' = [down EXCEPT ![1] = IF Left(m) THEN <<>> ELSE @,
                            ![2] = @ \o Answers(m, Reported(m))]
    /\ flying' = flying \cup {[f EXCEPT !.through = 2] : f \in {f \in flying : f.by = m}}
    /\ UNCHANGED <<log, page, txn>>

(* The answer may have been lost with the redirector: it is asked again.   *)
AskAgain(m) ==
    /\ parent[m] = 2 /\ txn[m].is = "waiting"
    /\ Outcome(m) # {}
    /\ \A f \in flying : f.by # m
    /\ \A i \in 1..Len(down[2]) : down[2][i].type # "Told" \/ down[2][i].to # m
    /\ LET i == Max(Outcome(m))
       IN flying' = flying \cup {[by |-> m, through |-> 2, wrote |-> log[i].wrote,
                                  reads |-> {}, evidence |-> 0]}
    /\ UNCHANGED <<log, entry, down, alive, at, dir, parent, pos, page, unsure, want, txn>>

Next ==
    \/ \E p \in Pages : CommitElsewhere(p)
    \/ \E request \in flying : Accept(request)
    \/ \E request \in flying : Refuse(request)
    \/ \E request \in flying : Remember(request)
    \/ \E r \in Sites : Step(r)
    \/ \E r \in Sites : Image(r)
    \/ \E r \in Sites : Resynchronised(r)
    \/ \E r \in Sites : Told(r)
    \/ Crash
    \/ \E m \in Members, p \in Pages : Fetch(m, p)
    \/ \E m \in Members, p \in Pages : Evict(m, p)
    \/ \E m \in Members, p \in Pages : Read(m, p)
    \/ \E m \in Members, p \in Pages : Commit(m, p)
    \/ \E m \in Members : Turn(m)
    \/ \E m \in Members : AskAgain(m)

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold                                                          *)
(***************************************************************************)

(* Rule 3, of what can be read.                                            *)
Validity ==
    \A m \in Members, p \in Pages :
        Shows(m) /\ page[m][p].has => page[m][p].val = ValueAt(p, pos[m])

Serializable == \A i \in 1..Position : log[i].serial

(* Rules 4 and 5: it could commit read-only at its position.               *)
Evidence ==
    \A m \in Members : txn[m].is = "running" =>
        \A r \in txn[m].reads : r.val = ValueAt(r.page, pos[m])

(* Rule 11: a request that went two ways is done once. *)
ExactlyOnce == \A m \in Members : Cardinality(Outcome(m)) <= 1
=============================================================================
