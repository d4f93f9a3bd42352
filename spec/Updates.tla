------------------------------ MODULE Updates ------------------------------
(***************************************************************************)
(* Updates in logs: rules C6 and C7 of docs/protocol.md, with rule 13.     *)
(*                                                                         *)
(* A home and its members, with or without a site between them.  There is  *)
(* one segment with one page.  An update adds one to a counter there, so   *)
(* it counts twice if it is applied twice.  Its id is <<log, number>>.     *)
(* Each member has one log, which has the member's number.                 *)
(*                                                                         *)
(* A member saves its updates at the home.  It also shows them to its      *)
(* neighbours, through their site.  The home executes an update at a       *)
(* position.  Its stream brings the change of the page and the id.  A      *)
(* broken edge loses what is on it.                                        *)
(*                                                                         *)
(* A page is right as of its member's position, so it has no value here:   *)
(* PeerFetch.tla and Failover.tla model images.                            *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Parent,         \* where each node begins; nodes have numbers from 1, the home is 0
    Updates,        \* how many updates each member writes: the first nodes are members
    Refusals,       \* how many updates the home may refuse
    Evictors,       \* the members that may give the page up
    Turners,        \* the members that may turn to any parent
    Faults,         \* how often something fails
    Kinds           \* what may fail: "edge", "member", "site", "home"

(* To which children a step names its update.  "followers" is Thorp: to    *)
(* each child whose Have the home has answered.  "exchanged": to those     *)
(* with which the parent has exchanged the update.  "holders": to those of *)
(* them that hold the page.                                                *)
CONSTANT Named

(* Guards: TRUE is Thorp; each one FALSE is a weaker protocol. *)
CONSTANTS
    TakesOnlyNext,      \* the home takes only the next number of a log
    SavedInBatch,       \* the last number is as durable as the commit
    OneStep,            \* the page changes and the update leaves the view at once
    HaveInStream,       \* the answer to Have is as of its place in the stream
    WaitsForHave,       \* a member stays where its old stream ended until that answer
    HaveRegisters,      \* with that answer a child follows, also in a new stream
    ShowsAfterHave,     \* a member shows others nothing before that answer
    FollowedSince,      \* a neighbour shows what was open at a place that it has followed from
    AboveSettled,       \* and whose number is above all that it knows to be settled
    StoresRefusals,     \* the home stores refusals
    NamesRefusals,      \* and names them in its answer to Have
    UntilConfirmed,     \* until the log has confirmed them
    SendsAgain          \* a log sends again what was on a broken edge

Home == 0
Never == 99
Nodes == 1..Len(Parent)
Members == 1..Len(Updates)
Sites == Nodes \ Members
Parents == {Home} \cup Sites

VARIABLES
    hist,       \* the home's commits and refusals, each at a position
    saved,      \* the last number of each log
    kept,       \* the refusals that no log has confirmed
    pool,       \* updates that have come to the home
    parent,     \* of each node
    live,       \* whether its edge to the parent stands
    up, down,   \* what is on the edge
    beside,     \* an answer beside the stream: only without HaveInStream
    follows,    \* the nodes that follow the segment at their parent
    exch,       \* the updates that the parent has exchanged on the edge
    log,        \* each member's log
    node,       \* what a node has in memory
    faults

home == <<hist, saved, kept>>
edges == <<parent, live, up, down, beside, follows, exch>>
vars == <<hist, saved, kept, pool, parent, live, up, down, beside, follows, exch,
          log, node, faults>>

NoNumbers == [l \in Members |-> 0]

Started(view) ==
    [waits |-> FALSE,       \* for the answer to its Have
     at |-> 0,              \* the position that it shows
     next |-> 0,            \* where its stream is
     page |-> FALSE,        \* whether it holds the page
     view |-> view,         \* the updates over the page
     late |-> {},           \* updates that leave the view later: only without OneStep
     sent |-> {},           \* what it has sent to the home in this stream
     shown |-> {},          \* what it has shown to its neighbours in this stream
     since |-> Never,       \* where in the stream it began to follow
     known |-> NoNumbers]   \* what it knows to be settled

Init ==
    /\ hist = <<>>
    /\ saved = NoNumbers
    /\ kept = {}
    /\ pool = {}
    /\ parent = Parent
    /\ live = [n \in Nodes |-> TRUE]
    /\ up = [n \in Nodes |-> <<>>]
    /\ down = [n \in Nodes |-> <<>>]
    /\ beside = [n \in Nodes |-> <<>>]
    /\ follows = Nodes
    /\ exch = [n \in Nodes |-> {}]
    /\ log = [m \in Members |-> [wrote |-> 0, saved |-> {}, rejected |-> {}]]
    /\ node = [n \in Nodes |-> [Started({}) EXCEPT !.page = n \in Members, !.since = 0]]
    /\ faults = 0

Max(a, b) == IF a > b THEN a ELSE b
Position == Len(hist)
ExecutedAt(p) == {hist[i].id : i \in {i \in 1..p : hist[i].ok}}
Executed == ExecutedAt(Position)
Refused == {hist[i].id : i \in {i \in 1..Position : ~hist[i].ok}}

Answered(m) == {<<m, k>> : k \in 1..log[m].wrote}
Pending(m) == Answered(m) \ (log[m].saved \cup log[m].rejected)
Lowest(ids) == {u \in ids : \A v \in ids : u[2] <= v[2]}

(* Up to this number a log knows what has become of its updates.           *)
Confirmed(m) ==
    IF Pending(m) = {} THEN log[m].wrote
    ELSE (CHOOSE k \in 1..log[m].wrote : <<m, k>> \in Lowest(Pending(m))) - 1

Place(n) == IF n = Home THEN Position ELSE node[n].at
Settled(numbers, u) == u[2] <= numbers[u[1]]
Below(n) == {c \in Nodes : parent[c] = n /\ live[c]}
Reaches(m) == live[m] /\ (parent[m] = Home \/ live[parent[m]])

(***************************************************************************)
(* A member writes, saves, and shows                                       *)
(***************************************************************************)

(* The update is durable, then shown, then answered: here in one step.     *)
Write(m) ==
    /\ log[m].wrote < Updates[m]
    /\ log' = [log EXCEPT ![m].wrote = @ + 1]
    /\ node' = [node EXCEPT ![m].view = @ \cup {<<m, log[m].wrote + 1>>}]
    /\ UNCHANGED <<home, pool, edges, faults>>

Unsent(m) == Pending(m) \ node[m].sent

(* Where steps go by what was exchanged, an update is first shown.         *)
MaySave(m, u) == Named = "followers" \/ parent[m] = Home \/ u \in node[m].shown

Save(m) ==
    /\ Reaches(m)
    /\ \E u \in Lowest(Unsent(m)) :
          /\ MaySave(m, u)
          /\ up' = [up EXCEPT ![m] = Append(@, [type |-> "Save", id |-> u,
                                                confirmed |-> Confirmed(m)])]
          /\ node' = [node EXCEPT ![m].sent = @ \cup {u}]
    /\ UNCHANGED <<home, pool, parent, live, down, beside, follows, exch, log, faults>>

(* It is not settled as of where this member is: it would know.            *)
Show(m) ==
    /\ live[m] /\ parent[m] \in Sites
    /\ ShowsAfterHave => ~node[m].waits
    /\ \E u \in Lowest(Pending(m) \ node[m].shown) :
          /\ up' = [up EXCEPT ![m] = Append(@, [type |-> "Show", id |-> u,
                                                open |-> node[m].next])]
          /\ node' = [node EXCEPT ![m].shown = @ \cup {u}]
    /\ UNCHANGED <<home, pool, parent, live, down, beside, follows, exch, log, faults>>

Evict(m) ==
    /\ m \in Evictors /\ node[m].page
    /\ node' = [node EXCEPT ![m].page = FALSE]
    /\ UNCHANGED <<home, pool, edges, log, faults>>

(* The image comes in the stream, behind what is there.                    *)
Fetch(m) ==
    /\ Reaches(m) /\ ~node[m].waits
    /\ ~node[m].page /\ down[m] = <<>>
    /\ node' = [node EXCEPT ![m].page = TRUE]
    /\ UNCHANGED <<home, pool, edges, log, faults>>

(***************************************************************************)
(* What comes up                                                           *)
(***************************************************************************)
Rising(type) == {n \in Nodes : up[n] # <<>> /\ Head(up[n]).type = type}
RisingTo(all, type) == {n \in Rising(type) : parent[n] \in all}

(* What has crossed an edge. It matters only if steps go by it.            *)
Exchanged(some, ids) ==
    exch' = [n \in Nodes |-> IF n \in some /\ Named # "followers" THEN exch[n] \cup ids
                             ELSE exch[n]]

(* A site passes it on, unless it has lost the home.                       *)
Relayed(n) ==
    up' = [up EXCEPT ![n] = Tail(@),
                     ![parent[n]] = IF live[parent[n]] THEN Append(@, Head(up[n])) ELSE @]

SaveRelayed(n) ==
    /\ Relayed(n)
    /\ Exchanged({n}, {Head(up[n]).id})
    /\ UNCHANGED <<home, pool, parent, live, down, beside, follows, log, node, faults>>

(* An update stays in the pool until it is taken: in any order, and also   *)
(* when the edge that brought it is gone.                                  *)
SaveUp(n) ==
    /\ pool' = pool \cup {[id |-> Head(up[n]).id, from |-> n, confirmed |-> Head(up[n]).confirmed]}
    /\ Exchanged({n}, {Head(up[n]).id})
    /\ up' = [up EXCEPT ![n] = Tail(@)]
    /\ UNCHANGED <<home, parent, live, down, beside, follows, log, node, faults>>

(* The site shows it to all others that follow.                            *)
ShowUp(n) ==
    /\ LET s == Head(up[n])
           to == (Below(parent[n]) \cap follows) \ {n}
       IN /\ down' = [c \in Nodes |-> IF c \in to THEN Append(down[c], s) ELSE down[c]]
          /\ Exchanged(to \cup {n}, {s.id})
    /\ up' = [up EXCEPT ![n] = Tail(@)]
    /\ UNCHANGED <<home, pool, parent, live, beside, follows, log, node, faults>>

Answer(have) ==
    [type |-> "Have", of |-> have.of, logs |-> have.logs, ids |-> have.ids, last |-> saved,
     refused |-> IF NamesRefusals THEN {u \in kept : u[1] \in have.logs} ELSE {}]

Registers(n, have) ==
    /\ follows' = IF HaveRegisters THEN follows \cup {n} ELSE follows
    /\ Exchanged({n}, IF HaveRegisters THEN have.ids ELSE {})

(* Only the home answers.  A site passes the question on.                  *)
HaveRelayed(n) ==
    /\ Relayed(n)
    /\ UNCHANGED <<home, pool, parent, live, down, beside, follows, exch, log, node, faults>>

HaveUp(n) ==
    /\ Registers(n, Head(up[n]))
    /\ LET answer == Answer(Head(up[n]))
       IN /\ down' = IF HaveInStream THEN [down EXCEPT ![n] = Append(@, answer)] ELSE down
          /\ beside' = IF HaveInStream THEN beside ELSE [beside EXCEPT ![n] = <<answer>>]
    /\ up' = [up EXCEPT ![n] = Tail(@)]
    /\ UNCHANGED <<home, pool, parent, live, log, node, faults>>

(***************************************************************************)
(* The home                                                                *)
(***************************************************************************)
Learns(c, u) ==
    CASE Named = "followers" -> c \in follows
      [] Named = "exchanged" -> u \in exch[c]
      [] Named = "holders" -> u \in exch[c] /\ (c \in Members => node[c].page)

MayTake(u) == IF TakesOnlyNext THEN u[2] = saved[u[1]] + 1 ELSE ~Settled(saved, u)

(* One batch: the commit, the last number, and the refusals that the log   *)
(* does not know.  Then each child has a step.                             *)
Decide(e, ok) ==
    /\ MayTake(e.id)
    /\ hist' = Append(hist, [id |-> e.id, ok |-> ok])
    /\ saved' = [saved EXCEPT ![e.id[1]] = e.id[2]]
    /\ kept' = {u \in kept : u[1] = e.id[1] => UntilConfirmed /\ u[2] > e.confirmed}
                   \cup (IF ok \/ ~StoresRefusals THEN {} ELSE {e.id})
    /\ pool' = pool \ {e}
    /\ down' = [c \in Nodes |->
            IF c \in Below(Home)
            THEN Append(down[c], [type |-> "Step", pos |-> Position + 1, id |-> e.id, ok |-> ok,
                                  named |-> Learns(c, e.id)])
            ELSE down[c]]

Execute ==
    /\ \E e \in pool : Decide(e, TRUE)
    /\ UNCHANGED <<parent, live, up, beside, follows, exch, log, node, faults>>

Refuse ==
    /\ Cardinality(Refused) < Refusals
    /\ \E e \in pool : Decide(e, FALSE)
    /\ UNCHANGED <<parent, live, up, beside, follows, exch, log, node, faults>>

Reply(e, message) ==
    /\ pool' = pool \ {e}
    /\ down' = [down EXCEPT ![e.from] = IF e.from \in Below(Home) THEN Append(@, message) ELSE @]

(* The number has been taken: the home answers from what it has stored.    *)
Old ==
    /\ \E e \in pool :
          /\ Settled(saved, e.id)
          /\ Reply(e, [type |-> "Old", of |-> e.id[1], id |-> e.id, ok |-> e.id \notin kept])
    /\ UNCHANGED <<home, parent, live, up, beside, follows, exch, log, node, faults>>

NotYet ==
    /\ \E e \in pool :
          /\ ~Settled(saved, e.id) /\ ~MayTake(e.id)
          /\ Reply(e, [type |-> "NotYet", of |-> e.id[1], id |-> e.id])
    /\ UNCHANGED <<home, parent, live, up, beside, follows, exch, log, node, faults>>

(***************************************************************************)
(* What comes down to a site                                               *)
(***************************************************************************)
Falling(type) == {n \in Nodes : down[n] # <<>> /\ Head(down[n]).type = type}

StepSite(s) ==
    /\ LET t == Head(down[s])
       IN /\ down' = [c \in Nodes |->
                IF c = s THEN Tail(down[s])
                ELSE IF c \in Below(s)
                THEN Append(down[c], [t EXCEPT !.named = @ /\ Learns(c, t.id)])
                ELSE down[c]]
          /\ node' = [node EXCEPT ![s].at = t.pos, ![s].next = t.pos]
    /\ UNCHANGED <<home, pool, parent, live, up, beside, follows, exch, log, faults>>

(* The member that asked follows from here on.  The others show it what    *)
(* they have.                                                              *)
HaveSite(s) ==
    /\ LET h == Head(down[s])
           asked == Below(s) \cap {h.of}
           others == (Below(s) \cap follows) \ asked
       IN /\ down' = [c \in Nodes |->
                IF c = s THEN Tail(down[s])
                ELSE IF c \in asked THEN Append(down[c], h)
                ELSE IF c \in others /\ asked # {} THEN Append(down[c], [type |-> "Tell"])
                ELSE down[c]]
          /\ IF asked = {} THEN UNCHANGED <<follows, exch>> ELSE Registers(h.of, h)
    /\ UNCHANGED <<home, pool, parent, live, up, beside, log, node, faults>>

ReplySite(s) ==
    /\ LET r == Head(down[s])
       IN down' = [c \in Nodes |-> IF c = s THEN Tail(down[s])
                                   ELSE IF c \in Below(s) \cap {r.of} THEN Append(down[c], r)
                                   ELSE down[c]]
    /\ UNCHANGED <<home, pool, parent, live, up, beside, follows, exch, log, node, faults>>

(***************************************************************************)
(* What comes down to a member                                             *)
(***************************************************************************)
Learn(m, settled, refused) ==
    LET mine == settled \cap Pending(m)
    IN log' = [log EXCEPT ![m].saved = @ \cup (mine \ refused),
                          ![m].rejected = @ \cup (mine \cap refused)]

Leave(w, u) ==
    LET v == [w EXCEPT !.known[u[1]] = Max(@, u[2])]
    IN IF OneStep THEN [v EXCEPT !.view = @ \ {u}] ELSE [v EXCEPT !.late = @ \cup {u}]

(* A member that waits shows nothing of it yet.                            *)
Step(m) ==
    /\ LET t == Head(down[m])
           w == [node[m] EXCEPT !.at = t.pos, !.next = t.pos]
       IN IF node[m].waits
          THEN /\ node' = [node EXCEPT ![m].next = t.pos]
               /\ UNCHANGED log
          ELSE IF t.named
          THEN /\ node' = [node EXCEPT ![m] = Leave(w, t.id)]
               /\ Learn(m, {t.id}, IF t.ok THEN {} ELSE {t.id})
          ELSE /\ node' = [node EXCEPT ![m] = w]
               /\ UNCHANGED log
    /\ down' = [down EXCEPT ![m] = Tail(@)]
    /\ UNCHANGED <<home, pool, parent, live, up, beside, follows, exch, faults>>

Late(m) ==
    /\ node[m].late # {}
    /\ node' = [node EXCEPT ![m].view = @ \ node[m].late, ![m].late = {}]
    /\ UNCHANGED <<home, pool, edges, log, faults>>

(* It goes on in one step: pages as of its place in the stream, and all    *)
(* that is settled there leaves the view.                                  *)
GoesOn(m, h) ==
    LET w == node[m]
        gone == {u \in w.view : u[1] \in h.logs /\ Settled(h.last, u)}
        known == [l \in Members |-> IF l \in h.logs THEN h.last[l] ELSE 0]
    IN /\ node' = [node EXCEPT ![m].waits = FALSE, ![m].at = w.next, ![m].view = @ \ gone,
                               ![m].since = w.next, ![m].known = known, ![m].shown = {}]
       /\ Learn(m, gone, h.refused)

Have(m) ==
    /\ GoesOn(m, Head(down[m]))
    /\ down' = [down EXCEPT ![m] = Tail(@)]
    /\ UNCHANGED <<home, pool, parent, live, up, beside, follows, exch, faults>>

HaveBeside(m) ==
    /\ beside[m] # <<>>
    /\ GoesOn(m, Head(beside[m]))
    /\ beside' = [beside EXCEPT ![m] = <<>>]
    /\ UNCHANGED <<home, pool, parent, live, up, down, follows, exch, faults>>

(* A neighbour follows from now on.                                        *)
Tell(m) ==
    /\ node' = [node EXCEPT ![m].shown = {}]
    /\ down' = [down EXCEPT ![m] = Tail(@)]
    /\ UNCHANGED <<home, pool, parent, live, up, beside, follows, exch, log, faults>>

(* A neighbour's update.  The step of it will name it.                     *)
MayShow(w, s) ==
    /\ ~w.waits
    /\ FollowedSince => w.since <= s.open
    /\ AboveSettled => ~Settled(w.known, s.id)

Shown(m) ==
    /\ LET s == Head(down[m])
       IN node' = IF MayShow(node[m], s) THEN [node EXCEPT ![m].view = @ \cup {s.id}] ELSE node
    /\ down' = [down EXCEPT ![m] = Tail(@)]
    /\ UNCHANGED <<home, pool, parent, live, up, beside, follows, exch, log, faults>>

(* A member that waits learns it with the answer to its Have.              *)
OldDown(m) ==
    /\ LET old == Head(down[m])
       IN IF node[m].waits THEN UNCHANGED <<log, node>>
          ELSE /\ node' = [node EXCEPT ![m] = Leave(@, old.id)]
               /\ Learn(m, {old.id}, IF old.ok THEN {} ELSE {old.id})
    /\ down' = [down EXCEPT ![m] = Tail(@)]
    /\ UNCHANGED <<home, pool, parent, live, up, beside, follows, exch, faults>>

(* The log sends the update again.                                         *)
NotYetDown(m) ==
    /\ node' = [node EXCEPT ![m].sent = @ \ {Head(down[m]).id}]
    /\ down' = [down EXCEPT ![m] = Tail(@)]
    /\ UNCHANGED <<home, pool, parent, live, up, beside, follows, exch, log, faults>>

(***************************************************************************)
(* A new stream                                                            *)
(***************************************************************************)

(* It names the logs whose updates it shows.  A site may bring an answer   *)
(* to an earlier question: that does no harm.                              *)
Has(m) ==
    [type |-> "Have", of |-> m, ids |-> node[m].view, logs |-> {u[1] : u \in node[m].view}]

(* What a member forgets with its old stream.                              *)
Lost(w) == [w EXCEPT !.waits = FALSE, !.next = w.at, !.sent = IF SendsAgain THEN {} ELSE @]

(* A member stays where its old stream ended.  A site goes on at once, and *)
(* the streams below it begin anew, too.                                   *)
Begun(n, pos) ==
    IF n \in Sites THEN [Started({}) EXCEPT !.at = pos, !.next = pos]
    ELSE [Lost(node[n]) EXCEPT !.waits = WaitsForHave, !.next = pos, !.since = Never,
                               !.shown = {}, !.at = IF WaitsForHave THEN @ ELSE pos]

Connect(n, p) ==
    /\ p = Parent[n] \/ n \in Turners
    /\ p = Home \/ live[p]
    /\ LET anew == {n} \cup Below(n)
       IN /\ node' = [c \in Nodes |-> IF c \in anew THEN Begun(c, Place(p)) ELSE node[c]]
          /\ up' = [c \in Nodes |-> IF c \notin anew THEN up[c]
                                    ELSE IF c \in Members THEN <<Has(c)>> ELSE <<>>]
          /\ down' = [c \in Nodes |-> IF c \in anew THEN <<>> ELSE down[c]]
          /\ follows' = follows \ anew
          /\ exch' = [c \in Nodes |-> IF c \in anew THEN {} ELSE exch[c]]
    /\ live' = [live EXCEPT ![n] = TRUE]
    /\ parent' = [parent EXCEPT ![n] = p]
    /\ UNCHANGED <<home, pool, beside, log, faults>>

(***************************************************************************)
(* What fails                                                              *)
(***************************************************************************)

Ends(kind, gone, crashed) ==
    /\ kind \in Kinds /\ faults < Faults
    /\ faults' = faults + 1
    /\ live' = [n \in Nodes |-> live[n] /\ n \notin gone]
    /\ up' = [n \in Nodes |-> IF n \in gone THEN <<>> ELSE up[n]]
    /\ down' = [n \in Nodes |-> IF n \in gone THEN <<>> ELSE down[n]]
    /\ beside' = [n \in Nodes |-> IF n \in gone THEN <<>> ELSE beside[n]]
    /\ follows' = follows \ gone
    /\ exch' = [n \in Nodes |-> IF n \in gone THEN {} ELSE exch[n]]
    /\ node' = [n \in Nodes |->
            IF n \in crashed THEN Started(IF n \in Members THEN Pending(n) ELSE {})
            ELSE IF n \in gone THEN Lost(node[n]) ELSE node[n]]

Break(n) ==
    /\ live[n]
    /\ Ends("edge", {n}, {})
    /\ UNCHANGED <<home, pool, parent, log>>

(* The log stays: its updates come back under their ids.                   *)
CrashMember(m) ==
    /\ Ends("member", {m}, {m})
    /\ UNCHANGED <<home, pool, parent, log>>

CrashSite(s) ==
    /\ Ends("site", {s} \cup Below(s), {s})
    /\ UNCHANGED <<home, pool, parent, log>>

CrashHome ==
    /\ Ends("home", Below(Home), {})
    /\ pool' = {}
    /\ saved' = IF SavedInBatch THEN saved ELSE NoNumbers
    /\ UNCHANGED <<hist, kept, parent, log>>

Next ==
    \/ \E m \in Members : Write(m)
    \/ \E m \in Members : Save(m)
    \/ \E m \in Members : Show(m)
    \/ \E m \in Members : Evict(m)
    \/ \E m \in Members : Fetch(m)
    \/ \E n \in RisingTo(Sites, "Save") : SaveRelayed(n)
    \/ \E n \in RisingTo({Home}, "Save") : SaveUp(n)
    \/ \E n \in RisingTo(Sites, "Show") : ShowUp(n)
    \/ \E n \in RisingTo(Sites, "Have") : HaveRelayed(n)
    \/ \E n \in RisingTo({Home}, "Have") : HaveUp(n)
    \/ Execute
    \/ Refuse
    \/ Old
    \/ NotYet
    \/ \E s \in Sites \cap Falling("Step") : StepSite(s)
    \/ \E s \in Sites \cap Falling("Have") : HaveSite(s)
    \/ \E s \in Sites \cap (Falling("Old") \cup Falling("NotYet")) : ReplySite(s)
    \/ \E m \in Members \cap Falling("Step") : Step(m)
    \/ \E m \in Members : Late(m)
    \/ \E m \in Members \cap Falling("Have") : Have(m)
    \/ \E m \in Members : HaveBeside(m)
    \/ \E m \in Members \cap Falling("Tell") : Tell(m)
    \/ \E m \in Members \cap Falling("Show") : Shown(m)
    \/ \E m \in Members \cap Falling("Old") : OldDown(m)
    \/ \E m \in Members \cap Falling("NotYet") : NotYetDown(m)
    \/ \E n \in {n \in Nodes : ~live[n]}, p \in Parents : Connect(n, p)
    \/ \E n \in Nodes : Break(n)
    \/ \E m \in Members : CrashMember(m)
    \/ \E s \in Sites : CrashSite(s)
    \/ CrashHome

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold                                                          *)
(***************************************************************************)

(* Rule C7: the home decides each update once.                             *)
ExactlyOnce ==
    \A i, k \in 1..Position : hist[i].id = hist[k].id => i = k

(* A member shows its page with the view over it.  No update is in both.   *)
NeverTwice ==
    \A m \in Members : node[m].page => node[m].view \cap ExecutedAt(node[m].at) = {}

(* A member shows each of its own answered updates, unless its log has it  *)
(* in the rejected list.                                                   *)
NoneMissed ==
    \A m \in Members : node[m].page =>
        Answered(m) \subseteq node[m].view \cup ExecutedAt(node[m].at) \cup log[m].rejected

(* Rule C6: an answered update is in its log, executed, or rejected.       *)
NeverVanishes ==
    \A m \in Members : Answered(m) \subseteq Pending(m) \cup Executed \cup log[m].rejected

(* No log takes what was refused for saved, or what was saved for refused. *)
AsDecided ==
    \A m \in Members : log[m].saved \cap Refused = {} /\ log[m].rejected \subseteq Refused

(* Once nothing is on its way, all is settled, and all members are equal.  *)
Quiet ==
    /\ \A n \in Nodes : live[n] /\ up[n] = <<>> /\ down[n] = <<>> /\ beside[n] = <<>>
    /\ pool = {}
    /\ \A m \in Members : Unsent(m) = {} /\ node[m].late = {}
AllSettled ==
    Quiet =>
        \A m \in Members :
            Pending(m) = {} /\ ~node[m].waits /\ node[m].view = {} /\ node[m].at = Position
=============================================================================
