------------------------------- MODULE Chain --------------------------------
(***************************************************************************)
(* Speculation: rule 14 of docs/protocol.md, with what rules 3 to 6 say of *)
(* own values that are shown before their place.                           *)
(*                                                                         *)
(* A home and one member, whose program runs transactions, several at a    *)
(* time: some write, and go on before they are answered; some only read.   *)
(* Other members' commits are one step each, at the home.  Every object is *)
(* a page of its own.  A value is the name of who wrote it: the number of  *)
(* a transaction, or Others and the position of another member's commit.   *)
(* Requests travel up in order and wait at the home for pages; what the    *)
(* home says comes down in one stream.  Pages come in one step, and so     *)
(* does a new stream with all that is resynchronised: SiteCommit.tla,      *)
(* PeerFetch.tla and Failover.tla have how.                                *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Objects,        \* numbers from 1
    Reads,          \* what each transaction reads, in any order
    Writes,         \* what each writes: without having read it, it is blind
    AnyScript,       \* instead of that each may read and write anything
    Foreign,        \* how many commits of others there are
    Evictions,      \* how many pages are given up
    Parks,          \* the transactions that may wait for pages at the home
    Busy,           \* those that it may refuse without a reason of their own
    Turns           \* how often the stream ends

(* Guards: TRUE is Thorp; each one FALSE is a weaker protocol.  The names  *)
(* in brackets are those of the planted bugs (core::planted).              *)
CONSTANTS
    NamedIsCommitted,   \* the home refuses what names no commit (BuiltOnAnything)
    NamedIsLast,        \* a name excuses that commit's changes only (NamedNotLast)
    ChangeWithdraws,    \* also what rests on what is changed (TentativeStays)
    EvictionWithdraws,  \* also what rests on what is given up (RestsOnEvicted)
    EndWithdraws,       \* what was shown ends with its stream
    LooksOnceMore,      \* before it shows what was asked for (ShownTooLate)
    NamesWrittenOver,   \* not only what was read (WrittenOverNotNamed)
    NamesBelow,         \* and not only the last that wrote it
    UnlessReadBefore,   \* not what it changed elsewhere (WrittenOverTakenForRead)
    WithdrawnGoesFirst, \* and what was made later waits (WithdrawnOvertaken)
    OwnReadNeverFrozen, \* who read what is not answered is doomed (OwnReadFrozen)
    HiddenFirst,        \* and then told as refused (RefusedToldFirst)
    WaitsForOwn         \* who has read what is not answered

T == 1..Len(Reads)
Others == 10
Running == 99       \* evidence that is not frozen: the member's position
NotHeld == 99       \* a page that is not here

VARIABLES
    rd, wr,     \* what each transaction reads and writes
    log,        \* the home's commits; the position is the length
    fate,       \* what the home has recorded of each transaction
    parked,     \* those that wait for pages there
    up, down,   \* the requests, and the stream
    pos,        \* the member's position
    floor,      \* where its stream began
    held,       \* since when it has heard of each page
    ids,        \* the transactions that it was asked to commit, in order
    own,        \* those of them that are shown
    early,      \* those whose program went on
    hiding,     \* refused, told, and still shown: only without HiddenFirst
    txn,        \* what each has read, and how far it is
    evicted, turned

site == <<pos, floor, held>>
home == <<log, fate, parked>>
counts == <<rd, wr, evicted, turned>>
vars == <<rd, wr, log, fate, parked, up, down, pos, floor, held, ids, own, early, hiding,
          txn, evicted, turned>>

Idle == [is |-> "idle", reads |-> {}, evidence |-> Running, on |-> {}, names |-> {}, past |-> {}]
Ended(how) == [Idle EXCEPT !.is = how]

Init ==
    /\ \/ ~AnyScript /\ rd = Reads /\ wr = Writes
       \/ AnyScript /\ rd \in [T -> SUBSET Objects] /\ wr \in [T -> SUBSET Objects]
    /\ log = <<>>
    /\ fate = [t \in T |-> "new"]
    /\ parked = {}
    /\ up = <<>>
    /\ down = <<>>
    /\ pos = 0
    /\ floor = 0
    /\ held = [o \in Objects |-> 0]
    /\ ids = <<>>
    /\ own = {}
    /\ early = {}
    /\ hiding = {}
    /\ txn = [t \in T |-> Idle]
    /\ evicted = 0
    /\ turned = 0

(***************************************************************************)
(* The log                                                                 *)
(***************************************************************************)
Position == Len(log)
ChangedAt(o, p) == IF p = 0 THEN 0 ELSE log[p].changed[o]
ValueAt(o, p) ==
    LET i == ChangedAt(o, p)
    IN IF i = 0 THEN 0 ELSE IF log[i].by = Others THEN Others + i ELSE log[i].by

Objs(reads) == {r.obj : r \in reads}
Place(t) == CHOOSE i \in 1..Position : log[i].by = t

(* A commit is one step of the stream.                                     *)
Entry(by, objs, serial) ==
    [by |-> by, objs |-> objs, serial |-> serial,
     changed |-> [o \in Objects |->
        IF o \in objs THEN Position + 1 ELSE ChangedAt(o, Position)]]

Accept(entry) ==
    /\ log' = Append(log, entry)
    /\ down' = Append(down, [type |-> "Step", of |-> Position + 1])

(***************************************************************************)
(* What is shown                                                           *)
(***************************************************************************)
Number(t) == CHOOSE i \in 1..Len(ids) : ids[i] = t
Open(t) == txn[t].is \in {"asked", "waiting", "sent"}
Over(o) == {u \in own : o \in wr[u]}
Top(o) == CHOOSE u \in Over(o) : \A v \in Over(o) : Number(v) <= Number(u)
Touched(t) == rd[t] \cup wr[t]

(* Where a transaction was delivered, as far as this stream has told it.   *)
Delivered(u) == \E i \in (floor + 1)..pos : log[i].by = u

(* Those that are not shown any more with some others: all that build on   *)
(* them.                                                                   *)
Grow(gone) == gone \cup {u \in own : txn[u].names \cap gone # {}}
WithAllOn(some) == Grow(Grow(some \cap own))

(* Whether it stands after this change: a name is of what it has seen.     *)
Outlives(t, by, objs) == Touched(t) \cap objs = {} \/ by \in txn[t].names

(* Running transactions that have read what is shown otherwise are doomed, *)
(* unless their evidence stands still at an earlier position.              *)
Doomed(all, objs, at) ==
    [t \in T |->
        IF all[t].is = "running" /\ Objs(all[t].reads) \cap objs # {}
           /\ (all[t].evidence = Running \/ at <= all[t].evidence)
        THEN Ended("doomed") ELSE all[t]]

WrittenBy(some) == UNION {wr[u] : u \in some}

(***************************************************************************)
(* A program                                                               *)
(***************************************************************************)

(* What it knows to have made before: a transaction that begins, and       *)
(* writes the same, is later than these.                                   *)
Before(t) ==
    IF txn[t].is = "running" THEN txn[t].past
    ELSE {u \in early : Open(u) /\ wr[u] \cap wr[t] # {}}

(* Once its evidence is frozen nothing newer is read, nor what is shown    *)
(* before its place (rule 4).                                              *)
Look(t, o) ==
    LET x == txn[t]
        mine == Over(o) # {}
        newer == mine \/ ChangedAt(o, pos) > x.evidence
        val == IF mine THEN Top(o) ELSE ValueAt(o, pos)
    IN IF x.evidence # Running /\ newer THEN Ended("doomed")
       ELSE [x EXCEPT !.is = "running", !.past = Before(t),
                      !.reads = @ \cup {[obj |-> o, val |-> val]},
                      !.on = IF mine THEN @ \cup {Top(o)} ELSE @]

Read(t, o) ==
    /\ txn[t].is \in {"idle", "running"}
    /\ o \in rd[t] \ Objs(txn[t].reads)
    /\ held[o] # NotHeld
    /\ txn' = [txn EXCEPT ![t] = Look(t, o)]
    /\ UNCHANGED <<home, up, down, site, ids, own, early, hiding, counts>>

HasRead(t) ==
    /\ txn[t].is \in {"idle", "running"}
    /\ Objs(txn[t].reads) = rd[t]

(* It asks its member to commit: what it read is current at its evidence.  *)
Ask(t) ==
    /\ wr[t] # {} /\ HasRead(t)
    /\ txn' = [txn EXCEPT ![t].is = "asked", ![t].past = Before(t),
                          ![t].evidence = IF @ = Running THEN pos ELSE @]
    /\ UNCHANGED <<home, up, down, site, ids, own, early, hiding, counts>>

(* One that only read stands without a message, once all that it has read  *)
(* of its own is answered (rule 5).                                        *)
Stand(t) ==
    /\ wr[t] = {} /\ rd[t] # {} /\ HasRead(t)
    /\ WaitsForOwn => \A u \in txn[t].on : ~Open(u)
    /\ txn' = [txn EXCEPT ![t].is = "stood",
                          ![t].evidence = IF @ = Running THEN pos ELSE @]
    /\ UNCHANGED <<home, up, down, site, ids, own, early, hiding, counts>>

(***************************************************************************)
(* The member                                                              *)
(***************************************************************************)

(* It names what it has read, and what it writes over: but not what has    *)
(* changed something that it read, for that may have been before.  What    *)
(* lies below such a one it writes over, too.                              *)
Names(t) ==
    LET tops == {Top(o) : o \in {o \in wr[t] : Over(o) # {}}}
        over == IF NamesBelow THEN UNION {Over(o) : o \in wr[t]} ELSE tops
        unread == {u \in over : UnlessReadBefore => wr[u] \cap rd[t] = {}}
        all == txn[t].on \cup (IF NamesWrittenOver THEN unread ELSE {})
    IN {u \in all : ~(Delivered(u) /\ Place(u) <= txn[t].evidence)}

(* All that it names is there, and all else that it has read is as it was. *)
IsAsRead(t, names) ==
    /\ \A u \in names : u \in own \/ Delivered(u)
    /\ \A o \in rd[t] : Over(o) # {} => Top(o) \in names
    /\ floor <= txn[t].evidence
    /\ \A i \in (txn[t].evidence + 1)..pos :
            Touched(t) \cap log[i].objs = {} \/ log[i].by \in names

(* Of all that it rests on everything later would be heard here.           *)
MayShow(t, names) ==
    /\ \A o \in Touched(t) : held[o] <= txn[t].evidence
    /\ LooksOnceMore => IsAsRead(t, names)

(* What was made before, writes the same, is not shown any more and not    *)
(* answered.                                                               *)
Blocked(t, earlier) ==
    /\ WithdrawnGoesFirst
    /\ \E u \in earlier : u \in early /\ Open(u) /\ u \notin own /\ wr[u] \cap wr[t] # {}

Waiting == {i \in 1..Len(ids) : txn[ids[i]].is = "waiting"}
Earlier(i) == {ids[k] : k \in 1..(i - 1)}

Taken(t, names, sent, shown) ==
    LET taken == [txn EXCEPT ![t].names = names,
                             ![t].is = IF sent THEN "sent" ELSE "waiting"]
    IN IF shown THEN Doomed(taken, wr[t], pos) ELSE taken

(* The member takes it in, shows it if it can, and sends it if it may.     *)
Take(t) ==
    /\ txn[t].is = "asked"
    /\ \E names \in {Names(t)}, sent \in {Waiting = {} /\ ~Blocked(t, Earlier(Len(ids) + 1))} :
       \E shown \in {MayShow(t, names)} :
          /\ own' = IF shown THEN own \cup {t} ELSE own
          /\ early' = IF shown THEN early \cup {t} ELSE early
          /\ txn' = Taken(t, names, sent, shown)
          /\ up' = IF sent THEN Append(up, [type |-> "Commit", of |-> t]) ELSE up
    /\ ids' = Append(ids, t)
    /\ UNCHANGED <<home, down, site, hiding, counts>>

Send ==
    /\ \E i \in Waiting :
          /\ \A k \in Waiting : i <= k
          /\ ~Blocked(ids[i], Earlier(i))
          /\ txn' = [txn EXCEPT ![ids[i]].is = "sent"]
          /\ up' = Append(up, [type |-> "Commit", of |-> ids[i]])
    /\ UNCHANGED <<home, down, site, ids, own, early, hiding, counts>>

TakeDown(type) == down # <<>> /\ Head(down).type = type /\ down' = Tail(down)

(* Everything of one position, as one.  What is delivered leaves what is   *)
(* shown, and changes nothing for who has read it; what rests on something *)
(* that is changed otherwise leaves with all that builds on it.            *)
ToldOf(p) == {o \in log[p].objs : held[o] # NotHeld}
EndedBy(p) ==
    WithAllOn({u \in own \ {log[p].by} :
                ChangeWithdraws /\ ~Outlives(u, log[p].by, ToldOf(p))})
AfterStep(p, gone) ==
    LET by == log[p].by
        anew == IF by \in own THEN {} ELSE ToldOf(p)
        left == Doomed(txn, anew \cup WrittenBy(gone), p)
    IN IF by \in T THEN [left EXCEPT ![by].is = "committed"] ELSE left

Step ==
    /\ TakeDown("Step")
    /\ \E p \in {Head(down).of} : \E gone \in {EndedBy(p)} :
          /\ pos' = p
          /\ own' = own \ (gone \cup {log[p].by})
          /\ txn' = AfterStep(p, gone)
    /\ UNCHANGED <<home, up, floor, held, ids, early, hiding, counts>>

(* It is shown no more, and then its program is told.                      *)
Refused ==
    /\ TakeDown("Refused")
    /\ \E t \in {Head(down).of} : \E gone \in {IF HiddenFirst THEN WithAllOn({t}) ELSE {}} :
          /\ own' = own \ gone
          /\ hiding' = IF HiddenFirst THEN {} ELSE hiding \cup ({t} \cap own)
          /\ txn' = [Doomed(txn, WrittenBy(gone), pos) EXCEPT ![t] = Ended("refused")]
    /\ UNCHANGED <<home, up, site, ids, early, counts>>

(* Only without the guard: now it is shown no more.                        *)
Hide ==
    /\ hiding # {}
    /\ own' = own \ WithAllOn(hiding)
    /\ txn' = Doomed(txn, WrittenBy(WithAllOn(hiding)), pos)
    /\ hiding' = {}
    /\ UNCHANGED <<home, up, down, site, ids, early, counts>>

(* A remembered outcome delivers nothing: the stream is past its place.    *)
Told ==
    /\ TakeDown("Told")
    /\ txn' = [txn EXCEPT ![Head(down).of].is = "committed"]
    /\ UNCHANGED <<home, up, site, ids, own, early, hiding, counts>>

(* Of a page that is given up nothing will be heard: what rests on it and  *)
(* is not answered is shown no more, and who has read it stands still.     *)
Frozen(all, o) ==
    [t \in T |->
        IF all[t].is # "running" \/ o \notin Objs(all[t].reads) THEN all[t]
        ELSE IF OwnReadNeverFrozen /\ all[t].on # {} THEN Ended("doomed")
        ELSE IF all[t].evidence = Running THEN [all[t] EXCEPT !.evidence = pos]
        ELSE all[t]]

Evict(o) ==
    /\ evicted < Evictions /\ held[o] # NotHeld
    /\ evicted' = evicted + 1
    /\ held' = [held EXCEPT ![o] = NotHeld]
    /\ \E gone \in {WithAllOn({u \in own : EvictionWithdraws /\ o \in Touched(u)})} :
          /\ own' = own \ gone
          /\ txn' = Frozen(Doomed(txn, WrittenBy(gone), pos), o)
    /\ UNCHANGED <<home, up, down, pos, floor, ids, early, hiding, rd, wr, turned>>

(* The page as of the member's own position.                               *)
Fetch(o) ==
    /\ held[o] = NotHeld
    /\ held' = [held EXCEPT ![o] = pos]
    /\ UNCHANGED <<home, up, down, pos, floor, ids, own, early, hiding, txn, counts>>

(* The stream ends and begins anew: all that was shown is shown no more,   *)
(* pages that have changed go, and what was sent is asked for, behind the  *)
(* requests that are still on their way, if they are.                      *)
Asks == [k \in 1..Cardinality({t \in T : txn[t].is = "sent"}) |->
            [type |-> "Outcome",
             of |-> CHOOSE t \in T : txn[t].is = "sent" /\ k =
                    Cardinality({u \in T : txn[u].is = "sent" /\ Number(u) <= Number(t)})]]

Turn(lost) ==
    /\ turned < Turns
    /\ turned' = turned + 1
    /\ pos' = Position
    /\ floor' = Position
    /\ down' = <<>>
    /\ up' = IF lost THEN Asks ELSE up \o Asks
    /\ own' = IF EndWithdraws THEN {} ELSE own
    /\ hiding' = {}
    /\ \E missed \in {{o \in Objects : held[o] # NotHeld /\ ChangedAt(o, Position) > pos}} :
          /\ held' = [o \in Objects |-> IF o \in missed THEN NotHeld ELSE held[o]]
          /\ txn' = Doomed(Doomed(txn, WrittenBy(own \ own'), pos), missed, Position)
    /\ UNCHANGED <<home, ids, early, rd, wr, evicted>>

(***************************************************************************)
(* The home                                                                *)
(***************************************************************************)
TakeUp(type) == up # <<>> /\ Head(up).type = type /\ up' = Tail(up)
Says(type, t) == down' = Append(down, [type |-> type, of |-> t])

(* What it names must be committed, and excuses what it changed last.      *)
Valid(t) ==
    LET x == txn[t]
        known == {u \in x.names : fate[u] = "committed"}
    IN /\ NamedIsCommitted => known = x.names
       /\ \A o \in rd[t] : ChangedAt(o, Position) > x.evidence =>
            IF NamedIsLast THEN log[ChangedAt(o, Position)].by \in known ELSE known # {}

WasCurrent(t) == \A r \in txn[t].reads : r.val = ValueAt(r.obj, Position)

Judge(t) ==
    \/ /\ Valid(t)
       /\ Accept(Entry(t, wr[t], WasCurrent(t)))
       /\ fate' = [fate EXCEPT ![t] = "committed"]
    \/ /\ ~Valid(t) \/ t \in Busy
       /\ Says("Refused", t)
       /\ fate' = [fate EXCEPT ![t] = "refused"]
       /\ UNCHANGED log

(* One whose outcome was asked for has ended; what names one that waits    *)
(* for pages waits, too.                                                   *)
Arrive ==
    /\ TakeUp("Commit")
    /\ \E t \in {Head(up).of} :
       /\ txn[t].names \cap parked = {}
       /\ Judge(t)
    /\ UNCHANGED <<parked, site, ids, own, early, hiding, txn, counts>>

Park ==
    /\ TakeUp("Commit")
    /\ \E t \in {Head(up).of} :
       /\ t \in Parks \/ txn[t].names \cap parked # {}
       /\ parked' = parked \cup {t}
    /\ UNCHANGED <<log, fate, down, site, ids, own, early, hiding, txn, counts>>

Loaded(t) ==
    /\ t \in parked
    /\ txn[t].names \cap parked = {}
    /\ parked' = parked \ {t}
    /\ Judge(t)
    /\ UNCHANGED <<up, site, ids, own, early, hiding, txn, counts>>

(* What is not known is recorded as refused, also while it waits.          *)
Outcome ==
    /\ TakeUp("Outcome")
    /\ \E t \in {Head(up).of} :
       /\ Says(IF fate[t] = "committed" THEN "Told" ELSE "Refused", t)
       /\ fate' = [fate EXCEPT ![t] = IF @ = "new" THEN "refused" ELSE @]
       /\ parked' = parked \ {t}
    /\ UNCHANGED <<log, site, ids, own, early, hiding, txn, counts>>

CommitElsewhere(o) ==
    /\ Cardinality({i \in 1..Position : log[i].by = Others}) < Foreign
    /\ Accept(Entry(Others, {o}, TRUE))
    /\ UNCHANGED <<fate, parked, up, site, ids, own, early, hiding, txn, counts>>

Next ==
    \/ \E t \in T, o \in Objects : Read(t, o)
    \/ \E t \in T : Ask(t)
    \/ \E t \in T : Stand(t)
    \/ \E t \in T : Take(t)
    \/ Send
    \/ Step
    \/ Refused
    \/ Hide
    \/ Told
    \/ \E o \in Objects : Evict(o)
    \/ \E o \in Objects : Fetch(o)
    \/ \E lost \in BOOLEAN : Turn(lost)
    \/ Arrive
    \/ Park
    \/ \E t \in T : Loaded(t)
    \/ Outcome
    \/ \E o \in Objects : CommitElsewhere(o)

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold                                                          *)
(***************************************************************************)

(* Rule 6: every commit read what was there just before its position, own  *)
(* values that were shown before theirs, too.                              *)
Serializable == \A i \in 1..Position : log[i].serial

(* Trap 8: nobody commits on what was refused, or comes before it.         *)
OnCommitted ==
    \A i \in 1..Position : log[i].by \in T =>
        \A u \in txn[log[i].by].on : fate[u] = "committed" /\ Place(u) < i

(* A program's writes of one object are in its order.                      *)
InOrder ==
    \A i \in 1..Position : log[i].by \in T =>
        \A k \in 1..(i - 1) : log[k].by \in T => log[i].by \notin txn[log[k].by].past

(* What a transaction sees stands together: at some position, with a chain *)
(* of own commits over it, each of which could be committed just there.    *)
On(some) == some \cup UNION {txn[u].on \cup txn[u].names : u \in some}
ChainOf(t) == On(On(On(txn[t].on)))
StandsAt(t, p) ==
    LET chain == {u \in ChainOf(t) : ~\E i \in 1..p : log[i].by = u}
        writers(o, below) == {u \in chain : o \in wr[u] /\ Number(u) < below}
        value(o, below) ==
            IF writers(o, below) = {} THEN ValueAt(o, p)
            ELSE CHOOSE u \in writers(o, below) :
                    \A v \in writers(o, below) : Number(v) <= Number(u)
    IN /\ \A r \in txn[t].reads : r.val = value(r.obj, Len(ids) + 1)
       /\ \A u \in chain : \A r \in txn[u].reads : r.val = value(r.obj, Number(u))
Opacity == \A t \in T : txn[t].is = "running" => \E p \in 0..Position : StandsAt(t, p)

(* Rule 5: who was told to stand saw what was committed at its evidence.   *)
Readers ==
    \A t \in T : txn[t].is = "stood" =>
        \A r \in txn[t].reads : r.val = ValueAt(r.obj, txn[t].evidence)

(* What is shown is not answered.                                          *)
Shown == \A u \in own : Open(u) \/ u \in hiding
=============================================================================
