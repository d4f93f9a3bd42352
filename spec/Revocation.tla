----------------------------- MODULE Revocation ----------------------------
(***************************************************************************)
(* Taking a right away: rules R4 and R5 of docs/protocol.md.               *)
(*                                                                         *)
(* A home, two redirectors and their members; one segment with one page of *)
(* one object, whose value is the position of the commit that wrote it.    *)
(* Who may read is in the stream (record 0019): with its beginning, and    *)
(* with the step of each revocation.  The home's streams are asynchronous; *)
(* its images come in the stream or beside it, labelled.  A redirector and *)
(* its members speak at once.  Only a helper takes its time: its image may *)
(* be on its way for ever.  Redirector 1 may crash, and members turn to    *)
(* redirector 2, where they report their page.                             *)
(*                                                                         *)
(* A right that is lost does not come back.                                *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Members,        \* numbers from 1; member 1 begins with the page
    Losers,         \* the members that may lose their right
    Commits,        \* how many commits there are, revocations with them
    Fetches,        \* how often each member may ask for the page: <<1, 1, 2>>
    Evictors,       \* the members that may give it up
    Crashes         \* whether redirector 1 crashes

(* When rights are checked: "given" is Thorp.  "request" checks only when  *)
(* somebody asks, and when a right is taken away.                          *)
CONSTANT Checks

(* Guards: TRUE is Thorp; each one FALSE is a weaker protocol. *)
CONSTANTS
    WaitsForLabel,      \* an image beside the stream is given once its label is reached
    EachWaiter,         \* each waiter of a joined fetch is judged on its own
    NextTryChecks,      \* a child is judged before it is entered for another helper
    EndsPages,          \* a revocation ends what the child holds
    BeginHasReaders,    \* a stream begins with who may read
    ChecksReports,      \* a child is entered for a reported page only if it may read it
    StruckIsChanged,    \* a reported page that has ended before the answer has changed
    TriesOn             \* a helper without the page is not the last answer

Sites == {1, 2}
Nobody == 0
NoImage == [is |-> FALSE, label |-> 0, val |-> 0]
NoPage == [has |-> FALSE, val |-> 0]

VARIABLES
    log,        \* the home's commits: what is written, or who loses the right
    site,       \* what the home has of each redirector: a stream, its entry, its request
    down,       \* the stream to each redirector
    beside,     \* the home's image for it, beside the stream
    alive,      \* redirector 1
    red,        \* what each redirector has
    member,     \* what each member has
    helper,     \* which neighbour is asked for each member's page
    flight      \* the image of that one, on its way to the redirector

vars == <<log, site, down, beside, alive, red, member, helper, flight>>

Init ==
    /\ log = <<>>
    /\ site = [r \in Sites |-> [streams |-> r = 1, entered |-> r = 1, asked |-> FALSE]]
    /\ down = [r \in Sites |-> <<>>]
    /\ beside = [r \in Sites |-> NoImage]
    /\ alive = TRUE
    /\ red = [r \in Sites |->
            [open |-> r = 1, at |-> 0, readers |-> IF r = 1 THEN Members ELSE {},
             own |-> NoPage,        \* its memory
             kept |-> 0,            \* what its stream brought of the page since it asked
             early |-> NoImage,     \* an image ahead of its position
             waiting |-> <<>>,      \* whose fetch is on its way up
             dir |-> IF r = 1 THEN {1} ELSE {}]]
    /\ member = [m \in Members |->
            [parent |-> 1, page |-> [has |-> m = 1, val |-> 0],
             unsure |-> FALSE,      \* reported, and not resynchronised
             wants |-> FALSE, kept |-> 0, asked |-> 0,
             refused |-> FALSE,
             given |-> 0]]          \* the highest position as of which it got anything
    /\ helper = [m \in Members |-> Nobody]
    /\ flight = [m \in Members |-> NoImage]

Max(a, b) == IF a > b THEN a ELSE b
Position == Len(log)
ValueAt(n) == IF n = 0 THEN 0 ELSE log[n].after
Value == ValueAt(Position)

(* The position from which on a member has no right: none is reached.      *)
Never == Commits + 1
Lost(m) == IF \E n \in 1..Position : log[n].lost = m
           THEN CHOOSE n \in 1..Position : log[n].lost = m
           ELSE Never
MayNow == {m \in Members : Lost(m) = Never}

Up(r) == red[r].open

(***************************************************************************)
(* The home                                                                *)
(***************************************************************************)
Tell(wrote, lost) ==
    [r \in Sites |->
        IF site[r].streams
        THEN Append(down[r], [type |-> "Step", pos |-> Position + 1, lost |-> lost,
                              wrote |-> wrote /\ site[r].entered])
        ELSE down[r]]

Write ==
    /\ Position < Commits
    /\ log' = Append(log, [lost |-> Nobody, after |-> Position + 1])
    /\ down' = Tell(TRUE, Nobody)
    /\ UNCHANGED <<site, beside, alive, red, member, helper, flight>>

Revoke(m) ==
    /\ Position < Commits
    /\ m \in Losers \cap MayNow
    /\ log' = Append(log, [lost |-> m, after |-> Value])
    /\ down' = Tell(FALSE, m)
    /\ UNCHANGED <<site, beside, alive, red, member, helper, flight>>

(* The second redirector joins the home, at any time.                      *)
Join ==
    /\ Crashes /\ ~site[2].streams
    /\ site' = [site EXCEPT ![2].streams = TRUE]
    /\ down' = [down EXCEPT ![2] = <<[type |-> "Begin", pos |-> Position,
                                      readers |-> IF BeginHasReaders THEN MayNow ELSE Members]>>]
    /\ UNCHANGED <<log, beside, alive, red, member, helper, flight>>

(* A site carries pages for its members, so it may have every one.         *)
AnswerInStream(r) ==
    /\ site[r].asked
    /\ site' = [site EXCEPT ![r].asked = FALSE, ![r].entered = TRUE]
    /\ down' = [down EXCEPT ![r] = Append(@, [type |-> "Image", val |-> Value])]
    /\ UNCHANGED <<log, beside, alive, red, member, helper, flight>>

AnswerBeside(r) ==
    /\ site[r].asked
    /\ site' = [site EXCEPT ![r].asked = FALSE, ![r].entered = TRUE]
    /\ beside' = [beside EXCEPT ![r] = [is |-> TRUE, label |-> Position, val |-> Value]]
    /\ UNCHANGED <<log, down, alive, red, member, helper, flight>>

(***************************************************************************)
(* A redirector gives                                                      *)
(***************************************************************************)
Gets(w, val, as_of) ==
    [w EXCEPT !.page = [has |-> TRUE, val |-> val], !.wants = FALSE, !.kept = 0,
              !.given = Max(@, as_of)]
IsRefused(w) == [w EXCEPT !.wants = FALSE, !.kept = 0, !.refused = TRUE]

MayBeGiven(R, m) == Checks = "request" \/ m \in R.readers

(* Without the guard, what the first of those who wait gets all get. *)
Judged(R, m) == MayBeGiven(R, IF EachWaiter THEN m ELSE Head(R.waiting))

InLine(R, m) == \E i \in 1..Len(R.waiting) : R.waiting[i] = m

(* A page has come from above: to its memory, and to all who wait.         *)
After(R, val) ==
    [R EXCEPT !.own = [has |-> TRUE, val |-> val], !.kept = 0, !.early = NoImage, !.waiting = <<>>,
              !.dir = @ \cup {m \in Members : InLine(R, m) /\ Judged(R, m)}]
Answered(R, all, val, as_of) ==
    [m \in Members |->
        IF ~InLine(R, m) THEN all[m]
        ELSE IF Judged(R, m) THEN Gets(all[m], val, as_of)
        ELSE IsRefused(all[m])]

(***************************************************************************)
(* What comes down to a redirector                                         *)
(***************************************************************************)
TakeDown(r, type) ==
    /\ down[r] # <<>> /\ Head(down[r]).type = type
    /\ down' = [down EXCEPT ![r] = Tail(@)]

Begin(r) ==
    /\ TakeDown(r, "Begin")
    /\ red' = [red EXCEPT ![r].open = TRUE, ![r].at = Head(down[r]).pos,
                          ![r].readers = Head(down[r]).readers]
    /\ UNCHANGED <<log, site, beside, alive, member, helper, flight>>

(* One position, applied as one.  Who lost the right loses the page at     *)
(* this position; who holds it gets what was written.  Before a reported   *)
(* page is answered, a member ignores what the stream brings of it.        *)
Follows(R, s) ==
    [R EXCEPT !.at = s.pos,
              !.readers = @ \ {s.lost},
              !.dir = IF EndsPages THEN @ \ {s.lost} ELSE @,
              !.own = IF s.wrote /\ @.has THEN [@ EXCEPT !.val = s.pos] ELSE @,
              !.kept = IF s.wrote THEN s.pos ELSE @]

Delivered(r, m, s) ==
    LET w == member[m]
        holds == m \in red[r].dir
    IN IF w.parent # r \/ ~holds THEN w
       ELSE IF s.lost = m /\ EndsPages
       THEN IF w.unsure THEN w ELSE [w EXCEPT !.page = NoPage]
       ELSE IF ~s.wrote THEN w
       ELSE [w EXCEPT !.given = Max(@, s.pos),
                      !.kept = IF w.wants THEN s.pos ELSE @,
                      !.page = IF w.page.has /\ ~w.unsure THEN [@ EXCEPT !.val = s.pos] ELSE @]

Step(r) ==
    /\ TakeDown(r, "Step")
    /\ LET s == Head(down[r])
           R == Follows(red[r], s)
           all == [m \in Members |-> Delivered(r, m, s)]
           val == Max(R.early.val, R.kept)
       IN IF R.early.is /\ R.early.label = s.pos
          THEN /\ red' = [red EXCEPT ![r] = After(R, val)]
               /\ member' = Answered(R, all, val, s.pos)
          ELSE /\ red' = [red EXCEPT ![r] = R]
               /\ member' = all
    /\ UNCHANGED <<log, site, beside, alive, helper, flight>>

Image(r) ==
    /\ TakeDown(r, "Image")
    /\ LET val == Head(down[r]).val
       IN /\ red' = [red EXCEPT ![r] = After(@, val)]
          /\ member' = Answered(red[r], member, val, red[r].at)
    /\ UNCHANGED <<log, site, beside, alive, helper, flight>>

(* An image ahead of the stream waits: what the redirector knows of rights *)
(* is as of its own position.                                              *)
Beside(r) ==
    /\ beside[r].is
    /\ beside' = [beside EXCEPT ![r] = NoImage]
    /\ LET i == beside[r]
           R == red[r]
           val == Max(i.val, R.kept)
       IN IF i.label > R.at /\ WaitsForLabel
          THEN /\ red' = [red EXCEPT ![r].early = i, ![r].kept = 0]
               /\ UNCHANGED member
          ELSE /\ red' = [red EXCEPT ![r] = After(R, val)]
               /\ member' = Answered(R, member, val, Max(i.label, R.at))
    /\ UNCHANGED <<log, site, down, alive, helper, flight>>

(* A page is resynchronised, as of this place in the stream.               *)
Resynchronised(r) ==
    /\ TakeDown(r, "Resynchronised")
    /\ LET a == Head(down[r])
           same == ~a.changed /\ (StruckIsChanged => a.of \in red[r].dir)
       IN /\ member' = [member EXCEPT ![a.of].unsure = FALSE,
                            ![a.of].page = IF same THEN @ ELSE NoPage,
                            ![a.of].given = IF same THEN Max(@, red[r].at) ELSE @]
          /\ red' = [red EXCEPT ![r].dir = IF same THEN @ ELSE @ \ {a.of}]
    /\ UNCHANGED <<log, site, beside, alive, helper, flight>>

Crash ==
    /\ Crashes /\ alive
    /\ alive' = FALSE
    /\ down' = [down EXCEPT ![1] = <<>>]
    /\ beside' = [beside EXCEPT ![1] = NoImage]
    /\ site' = [site EXCEPT ![1] = [streams |-> FALSE, entered |-> FALSE, asked |-> FALSE]]
    /\ helper' = [m \in Members |-> IF member[m].parent = 1 THEN Nobody ELSE helper[m]]
    /\ flight' = [m \in Members |-> IF member[m].parent = 1 THEN NoImage ELSE flight[m]]
    /\ red' = [red EXCEPT ![1] = [open |-> FALSE, at |-> 0, readers |-> {}, own |-> NoPage,
                                  kept |-> 0, early |-> NoImage, waiting |-> <<>>, dir |-> {}]]
    /\ UNCHANGED <<log, member>>

(***************************************************************************)
(* A member asks                                                           *)
(***************************************************************************)
MayAsk(m) ==
    /\ Up(member[m].parent)
    /\ ~member[m].page.has /\ ~member[m].wants
    /\ member[m].asked < Fetches[m]
IsReader(m) == m \in red[member[m].parent].readers
Asks(m) == [member[m] EXCEPT !.asked = @ + 1, !.wants = TRUE, !.kept = 0]

Deny(m) ==
    /\ MayAsk(m) /\ ~IsReader(m)
    /\ member' = [member EXCEPT ![m] = IsRefused(Asks(m))]
    /\ UNCHANGED <<log, site, down, beside, alive, red, helper, flight>>

FromMemory(m) ==
    /\ MayAsk(m) /\ IsReader(m)
    /\ LET R == red[member[m].parent]
       IN /\ R.own.has
          /\ member' = [member EXCEPT ![m] = Gets(Asks(m), R.own.val, R.at)]
    /\ red' = [red EXCEPT ![member[m].parent].dir = @ \cup {m}]
    /\ UNCHANGED <<log, site, down, beside, alive, helper, flight>>

(* Whoever asks while a request for the page is on its way up joins it.    *)
Above(r, m) ==
    /\ site' = [site EXCEPT ![r].asked = @ \/ red[r].waiting = <<>>]
    /\ red' = [red EXCEPT ![r].kept = IF red[r].waiting = <<>> THEN 0 ELSE @,
                          ![r].waiting = Append(@, m)]

AskAbove(m) ==
    /\ MayAsk(m) /\ IsReader(m)
    /\ ~red[member[m].parent].own.has
    /\ Above(member[m].parent, m)
    /\ member' = [member EXCEPT ![m] = Asks(m)]
    /\ UNCHANGED <<log, down, beside, alive, helper, flight>>

(***************************************************************************)
(* A neighbour helps                                                       *)
(***************************************************************************)
Has(m) == member[m].page.has /\ ~member[m].unsure
CanHelp(m, h) ==
    /\ h # m /\ member[h].parent = member[m].parent
    /\ h \in red[member[m].parent].dir /\ Has(h)

(* The requester is entered, then the helper is asked.                     *)
Redirect(m, h) ==
    /\ MayAsk(m) /\ IsReader(m)
    /\ CanHelp(m, h)
    /\ ~red[member[m].parent].own.has /\ red[member[m].parent].waiting = <<>>
    /\ red' = [red EXCEPT ![member[m].parent].dir = @ \cup {m}]
    /\ helper' = [helper EXCEPT ![m] = h]
    /\ member' = [member EXCEPT ![m] = Asks(m)]
    /\ UNCHANGED <<log, site, down, beside, alive, flight>>

(* The helper's newest image, labelled with its position.                  *)
Help(m) ==
    /\ helper[m] # Nobody /\ ~flight[m].is
    /\ Has(helper[m])
    /\ flight' = [flight EXCEPT ![m] = [is |-> TRUE, label |-> red[member[m].parent].at,
                                        val |-> member[helper[m]].page.val]]
    /\ UNCHANGED <<log, site, down, beside, alive, red, member, helper>>

(* It comes to the redirector, which judges the requester again.           *)
Helped(m) ==
    /\ flight[m].is
    /\ MayBeGiven(red[member[m].parent], m)
    /\ member' = [member EXCEPT ![m] = Gets(@, Max(flight[m].val, @.kept), flight[m].label)]
    /\ flight' = [flight EXCEPT ![m] = NoImage]
    /\ helper' = [helper EXCEPT ![m] = Nobody]
    /\ UNCHANGED <<log, site, down, beside, alive, red>>

(* The helper has no page any more, or its image may not be given.  The    *)
(* next try is another helper, or the way up.                              *)
Fails(m) ==
    \/ helper[m] # Nobody /\ ~flight[m].is /\ ~Has(helper[m])
    \/ flight[m].is /\ ~MayBeGiven(red[member[m].parent], m)
MayTry(m) == NextTryChecks => MayBeGiven(red[member[m].parent], m)

TryHelper(m, h) ==
    /\ TriesOn /\ Fails(m) /\ MayTry(m)
    /\ h # helper[m] /\ CanHelp(m, h)
    /\ red' = [red EXCEPT ![member[m].parent].dir = @ \cup {m}]
    /\ helper' = [helper EXCEPT ![m] = h]
    /\ flight' = [flight EXCEPT ![m] = NoImage]
    /\ UNCHANGED <<log, site, down, beside, alive, member>>

TryAbove(m) ==
    /\ TriesOn /\ Fails(m)
    /\ MayBeGiven(red[member[m].parent], m)
    /\ helper' = [helper EXCEPT ![m] = Nobody]
    /\ flight' = [flight EXCEPT ![m] = NoImage]
    /\ IF red[member[m].parent].own.has
       THEN LET R == red[member[m].parent]
            IN /\ member' = [member EXCEPT ![m] = Gets(@, R.own.val, R.at)]
               /\ UNCHANGED <<site, red>>
       ELSE /\ Above(member[m].parent, m)
            /\ UNCHANGED member
    /\ UNCHANGED <<log, down, beside, alive>>

TryNoMore(m) ==
    /\ Fails(m)
    /\ ~MayBeGiven(red[member[m].parent], m) \/ ~TriesOn
    /\ helper' = [helper EXCEPT ![m] = Nobody]
    /\ flight' = [flight EXCEPT ![m] = NoImage]
    /\ member' = IF TriesOn THEN [member EXCEPT ![m] = IsRefused(@)] ELSE member
    /\ UNCHANGED <<log, site, down, beside, alive, red>>

(***************************************************************************)
(* A member gives up its page, or turns to the other redirector            *)
(***************************************************************************)
Evict(m) ==
    /\ m \in Evictors /\ Up(member[m].parent) /\ Has(m)
    /\ member' = [member EXCEPT ![m].page = NoPage]
    /\ red' = [red EXCEPT ![member[m].parent].dir = @ \ {m}]
    /\ UNCHANGED <<log, site, down, beside, alive, helper, flight>>

(* It reports its page, as of where its old stream ended.  The redirector  *)
(* judges it, enters it, and asks the home.  A request is made anew.       *)
Turn(m) ==
    /\ member[m].parent = 1 /\ ~alive /\ Up(2)
    /\ LET w == member[m]
           reports == w.page.has /\ (ChecksReports => m \in red[2].readers)
       IN /\ member' = [member EXCEPT ![m].parent = 2, ![m].wants = FALSE, ![m].kept = 0,
                            ![m].asked = IF w.wants THEN @ - 1 ELSE @,
                            ![m].unsure = reports,
                            ![m].page = IF reports THEN @ ELSE NoPage]
          /\ red' = [red EXCEPT ![2].dir = IF reports THEN @ \cup {m} ELSE @]
          /\ site' = [site EXCEPT ![2].entered = @ \/ reports]
          /\ down' = IF reports
                     THEN [down EXCEPT ![2] = Append(@, [type |-> "Resynchronised", of |-> m,
                                                         changed |-> Value > w.page.val])]
                     ELSE down
    /\ UNCHANGED <<log, beside, alive, helper, flight>>

Next ==
    \/ Write
    \/ \E m \in Members : Revoke(m)
    \/ Join
    \/ \E r \in Sites : AnswerInStream(r)
    \/ \E r \in Sites : AnswerBeside(r)
    \/ \E r \in Sites : Begin(r)
    \/ \E r \in Sites : Step(r)
    \/ \E r \in Sites : Image(r)
    \/ \E r \in Sites : Beside(r)
    \/ \E r \in Sites : Resynchronised(r)
    \/ Crash
    \/ \E m \in Members : Deny(m)
    \/ \E m \in Members : FromMemory(m)
    \/ \E m \in Members : AskAbove(m)
    \/ \E m, h \in Members : Redirect(m, h)
    \/ \E m \in Members : Help(m)
    \/ \E m \in Members : Helped(m)
    \/ \E m, h \in Members : TryHelper(m, h)
    \/ \E m \in Members : TryAbove(m)
    \/ \E m \in Members : TryNoMore(m)
    \/ \E m \in Members : Evict(m)
    \/ \E m \in Members : Turn(m)

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold                                                          *)
(***************************************************************************)

(* Rule R5: nobody gets anything as of the position of its revocation, or  *)
(* above it: neither bytes, nor the answer that its page is as it was.     *)
NothingNewer == \A m \in Members : member[m].given < Lost(m)

(* So it has no value that was committed after its revocation.             *)
NoLaterBytes == \A m \in Members : member[m].page.has => member[m].page.val < Lost(m)

(* And once its parent stands there, it holds nothing that counts.         *)
NothingHeld ==
    \A m \in Members :
        Up(member[m].parent) /\ Has(m) => red[member[m].parent].at < Lost(m)

(* Who keeps the right is never refused ...                                *)
NeverRefused == \A m \in Members : member[m].refused => Lost(m) # Never

(* ... and has been answered once nothing is on its way.                   *)
Quiet ==
    /\ \A r \in Sites : down[r] = <<>> /\ ~beside[r].is /\ ~site[r].asked
    /\ \A m \in Members : helper[m] = Nobody /\ Up(member[m].parent)
Served == Quiet => \A m \in Members : ~member[m].wants /\ ~member[m].unsure

(* Rule 3: what a member shows is committed, as of its parent's position.  *)
Validity ==
    \A m \in Members :
        Up(member[m].parent) /\ Has(m) => member[m].page.val = ValueAt(red[member[m].parent].at)

(* Rule 2: a directory is never less than the truth.                       *)
Copies ==
    \A m \in Members :
        Up(member[m].parent) /\ member[m].page.has => m \in red[member[m].parent].dir \/ member[m].unsure
=============================================================================
