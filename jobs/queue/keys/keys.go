package keys

import (
	"slices"
	"strings"
)

// Prefix begins every key. The zone follows in braces, as a hash tag: all keys of a zone live in
// one slot of a cluster, and different zones spread over the slots.
const Prefix = "muster:"

// HubZone is the pretended zone of keys that belong to no zone. No real zone can have its name: an
// inventory with such a zone is refused.
const HubZone = "hub"

// Key describes one kind of key, for docs/REDIS.md and for the scripts.
type Key struct {
	Name    string // after the zone's prefix; "<x>" stands for an id
	Type    string
	Writers string // scripts and functions that write it
	What    string
}

// ZoneKeys lists the keys of a zone. The scripts get a Lua name for each: m.kQueue, m.kTask .. id
// and so on.
var ZoneKeys = []Key{
	{"queue", "zset", "move, step, end, epoch, fsck, reorder, recall",
		"jobs that have never started: id by the µs at which to run it"},
	{"again", "zset", "step, checkpoint, lose, end, move, epoch, control, fsck, appoint, recall",
		"jobs that have started or wait: id by the µs from which a worker may take it"},
	{"asks", "zset", "step, ask",
		"jobs that ended unknown and whose hosts a worker must ask: id by the µs from which it may"},
	{"held:<task>", "zset", "put, move, step, end, fsck, appoint, recall",
		"jobs of a task that is not committed, or paused, with their scores"},
	{"parked", "set", "step, move", "tasks whose jobs a take has laid aside in held:<task>"},
	{"task:<id>", "hash",
		"put, move, step, checkpoint, lose, end, epoch, control, fsck, speak, appoint, recall, ask",
		"this zone's part of a task: spec, hosts, counters, flags, jobs (`:<host>`), gates " +
			"(`gate:<step>:<host>`, `proof:…`), order (`order`, `signatures`, `share:<n>`), " +
			"openings (`turn:<µs>`), orders to ask a host (`ask:<host>`); expires 24 h after the end"},
	{"locks", "hash", "step, checkpoint, epoch, recall, ask",
		"host to the one attempt on it: end of the lock (µs), token and job"},
	{"sem:<name>", "hash", "step, lose, end, control, epoch, fsck, recall",
		"group/<group> or a limit: each job that holds it to its token; frozen: the reason"},
	{"sems", "set",
		"step, lose, end, control, epoch, fsck, recall", "semaphores that are held or frozen"},
	{"quarantined", "hash", "step, lose, end, control, fsck, recall",
		"host that takes only checks to the µs since when, the job that ended unknown there (-: a " +
			"person ordered it), and why"},
	{"cleared", "hash",
		"ClearGroup", "group to the µs of the last clear: a marker of an earlier, forgotten job does " +
			"not count any more"},
	{"limits", "hash", "control", "name of a limit to the number of jobs at a time"},
	{"wait:<resource>", "zset", "step, lose, end, control, recall, ask",
		"host/<host>: waiting job by the µs since which it waits; a semaphore: task by the µs of " +
			"its last turn; only a hint"},
	{"wait:<resource>:<task>", "zset", "step, lose, end, control, recall",
		"jobs of the task that wait for a semaphore, by the µs since which they wait; only a hint"},
	{"hold:<node>", "hash", "step, lose",
		"slot of a child to the request id, the jobs in hand and the reply of its last step, or to " +
			"the time at which it was lost"},
	{"open", "zset", "move, step, lose, end, fsck, recall",
		"tasks that have not ended: id by the µs at which the task is due; for lists"},
	{"rolling", "set",
		"move, step, lose, end, fsck, roll, recall", "tasks with a rule that have not ended"},
	{"overload", "string", "reorder",
		"token of the worker that reorders the queue, then \"cool\", with PX"},
	{"zone", "hash", "epoch, step, put, move, lose, end, control, reorder, recall, ask, Declare, Take",
		"run id, epoch, end of the freeze, whether history is kept and must answer, highest " +
			"TIME, last token, halt, pause, paused customers, whether `asks` may have jobs, changes of " +
			"tasks, last reordering, ended jobs and tasks, form, seat"},
	{"events", "stream",
		"put, move, step, lose, end, epoch, control, fsck, reorder, appoint, recall, ask, Alert",
		"all events of the zone; about 1,000,000 entries"},
	{"out:<id>", "stream", "step, speak, ask",
		"output of the host: one entry an attempt, many while it runs; expires after 24 h"},
	{"traits:<version>", "hash", "Publish",
		"host of an inventory to its customer, group and limits, separated by blanks; " +
			"limits of later inventories are added for the tasks that are open"},
	{"hosts:<version>", "hash", "Publish", "the hosts of this zone in an inventory: name to JSON"},
	{"wake", "channel",
		"move, step, lose, end, epoch, control, recall, ask", "a hint that something became due"},
}

// HubKeys lists the keys that belong to no zone.
var HubKeys = []Key{
	{"nodes", "zset", "Beat, Gone", "node id by the µs of its last beat"},
	{"node:<id>", "string", "Beat, Gone", "JSON of the node; PX 15 s, beat every 5 s"},
	{"nodeorders", "hash", "OrderNode",
		"node to the last order that it takes nothing, or takes jobs again, with a signature; JSON"},
	{"staff", "hash", "NoteStaff",
		"zone to the µs of the last beat that a server saw of a node of this zone"},
	{"zones", "set", "Submit, Publish", "all zones that were ever used"},
	{"apart", "hash", "Take",
		"zone with a Redis of its own to its seat, a random text that the zone has, too"},
	{"tasks", "zset", "Submit", "task id by the µs of its submit; the newest 10,000"},
	{"task:<id>", "hash", "Submit",
		"the data of a task that all its zones share; expires 70 days after the submit"},
	{"chain:<id>", "hash", "SaveChain, NoteChain, EndChain, AskChain",
		"tasks that follow each other: their data (JSON), the decisions and their results; expires " +
			"70 days after the submit"},
	{"chains", "set", "SaveChain, EndChain, ForgetChain, AskChain",
		"chains that a server must continue"},
	{"lane:<key>", "hash", "EnterLane, PutInLane, LeaveLane, ChangeLane",
		"task to its place in the lane (JSON): mode, time, whether it has begun; expires"},
	{"lanes", "set", "EnterLane, LeaveLane, ChangeLane", "keys of lanes with a task"},
	{"key:<key>", "zset", "Submit",
		"tasks that were submitted with this key, by the µs of the submit; expires"},
	{"retried:<task>", "hash", "Submit",
		"host of the task to the task that retries its job; ~id: the operator of that one, and " +
			"whether its list of hosts is final; expires when Redis forgets the task"},
	{"halt", "hash",
		"Halt, Lift, RestoreAgreed",
		"the halt of everything: id of the last order, whether the halt is in force, " +
			"operator and reason"},
	{"pauses", "hash",
		"Pause, Resume, PauseCustomer, ResumeCustomer, PauseZone, ResumeZone, Tend, RestoreAgreed",
		"task, customer or zone and its name: id of the last order, whether the pause is in force, " +
			"operator and reason"},
	{"commits", "set", "Submit, Tend",
		"tasks whose commit has begun and is not done in all zones"},
	{"signing", "zset", "PutHeld, CommitHeld, DropHeld",
		"tasks that wait for signatures of people, by the µs of their submit; for a day"},
	{"inventory", "hash", "Publish",
		"version, number of hosts and time of the published inventory"},
	{"windows", "hash",
		"SetTimetable, Apply, SetMovedFor, PutExcerpts, Restate, SayZones, RestoreAgreed",
		"table: the timetable (JSON); version, stamp; moved: the version of the last look at " +
			"appointments; excerpt:SCOPE: the part for workers (JSON), of the version in excerpts; " +
			"statement, signature, share:<n>: its proof; zones:SERVER: its time zone data"},
	{"estimates", "hash", "SaveEstimates, ReplaceEstimates",
		"a hash of runbook and arguments, model and customer, with | between, to the durations " +
			"(JSON); at most about 20,000"},
	{"events", "stream", "SetTimetable, Apply, BeginHistoryAway, EndHistoryAway",
		"events of orders that belong to no zone, and the times without history; about 100,000 entries"},
	{"history", "hash", "BeginHistoryAway, EndHistoryAway",
		"away: the time since which no events are stored, the reason, and how many of each stream " +
			"were stored; JSON"},
	{"blobs", "hash", "blob, PutBlob, RemoveBlob, TendBlobs",
		"stored contents: SHA-256 to the µs of its last use and JSON; ~id: a content on its way"},
	{"blob:<id>:<n>", "string", "PutBlob, RemoveBlob, TendBlobs",
		"512 KiB of a content; expires after a day unless the content is complete"},
	{"pins", "hash", "blob, TendBlobs",
		"SHA-256 and task that needs the content: the µs since which it does"},
	{"facts", "hash", "SaveFacts, ForgetFacts",
		"host to its facts (JSON); ~: a value that changes whenever another field does"},
	{"drained", "hash", "Drain, Undrain, RestoreAgreed",
		"drained host to the µs of the drain, operator and reason"},
	{"form", "hash", "Declare",
		"the least form of data that a muster must know to write to the hub, and the version of " +
			"muster that said so"},
	{"servers", "hash", "ReportServer, SignOff",
		"server to its version and its last report (JSON); a hint for people"},
	{"leader:<duty>", "string", "lead",
		"number of the term and the server that has the duty; PX 3 s"},
	{"terms", "hash", "lead", "duty to the number of its last term"},
	{"schedules", "hash",
		"schedule, Apply, RestoreAgreed",
		"name to JSON: the schedule, the operator of the last change, whether it is paused"},
	{"ticks", "hash", "schedule, tick, Apply, RestoreAgreed",
		"schedule to JSON: the last tick, the next one, the ticks that wait to become tasks"},
	{"triggers", "hash", "Change",
		"trigger to a MAC by the key of servers and JSON: when it fired, the events that it collects"},
	{"firings", "hash", "Change, Trim",
		"event/trigger to a MAC and JSON: what the trigger did about the event; task/<id>: the event " +
			"and the trigger that made the task; the newest 20,000, for a week"},
	{"firedat", "zset", "Change, Trim", "event/trigger by the µs of the last decision about it"},
	{"agreed", "hash", "LoseAgreed, RestoreAgreed",
		"lost: the time since which Redis lacks windows, schedules or orders, and which ones; JSON"},
	{"stamps", "hash", "schedule, Apply, Drain, Undrain, RestoreAgreed",
		"schedules, drained: number of their changes, for servers that keep a copy of them"},
	{"applies", "hash", "Apply, SavePlace, AskPlace",
		"version: of the last apply; result:<version>: MAC and JSON of what it did; id:<id>: its " +
			"version; the newest 1,000; place:<name>: MAC and JSON: the commit of a repository in " +
			"force, the last look; ask:<name>: asks to look"},
	{"origins", "hash", "Apply",
		"kind/name of an entry to a MAC and JSON: the place from which it comes"},
	{"entries", "hash", "Apply",
		"mark: version and stamp of the entries that are kept as texts; head: a MAC and JSON: the " +
			"version, and the checksum of each part; part:<kind>/<customer>: JSON: the names and texts"},
	{"tokens", "hash", "AddToken, DropToken",
		"id of a token to a MAC by the key of servers and JSON: owner, end, scope, hash of the secret"},
	{"uses", "hash", "NoteTokenUse, DropToken",
		"id of a token to the µs of its last use, within a minute"},
	{"sessions", "hash", "AddSession, DropSession, NoteSessionUse",
		"id of a session, link or code to a MAC by the key of servers and JSON: owner, end, hash of " +
			"the secret; <id>/used: MAC and µs of its last use"},
	{"inbox", "hash", "inbox",
		"seq: number of the last event that came from elsewhere; by source: taken, again, flood, " +
			"done, stuck, doubted (numbers), waiting (events), bytes, past (bytes), rate, told"},
	{"event:<id>", "hash", "inbox",
		"an event that came from elsewhere: record (a MAC by the key of servers and JSON), body as " +
			"its sender wrote it, seq, source, customer, class, state, tries, error, outcome, ended (µs)"},
	{"inbox:<class>:<customer>", "zset", "inbox",
		"events of a class and a customer that wait, by their numbers; without a customer: of the " +
			"whole house"},
	{"turns", "zset", "inbox", "customers with waiting events, by the µs of their last turn"},
	{"arrivals", "zset", "inbox", "all events that are kept, by their numbers"},
	{"past:<source>", "zset", "inbox", "events of a source that have ended, by the µs of their end"},
	{"seen:<id>", "string", "inbox",
		"number of an event, so that its delivery is recognized when it is repeated; PX of its source"},
	{"fed", "hash", "inbox",
		"how far muster's own events are told: steps (number), stream:<zone> (entry and number of " +
			"entries), hosts (versions of the inventory), facts, fact:<host> (JSON)"},
}

// Zone makes a key of a zone: kind is the name in ZoneKeys before "<".
func Zone(zone, kind, id string) string { return Prefix + "{" + zone + "}:" + kind + id }

// Hub makes a key that belongs to no zone.
func Hub(kind, id string) string { return Zone(HubZone, kind, id) }

// Lua returns the Lua code that gives the scripts their names of the keys. KEYS[1] of every script
// is the key `zone`; the code cuts the prefix from it.
//
// All functions and shared variables are fields of one table, m. If each were a local, Lua 5.1
// would search its list of captured locals for every function that it makes, which cost 50 µs a
// call (measured).
//
// The names that nearly every call needs come first. The others are made inside m.lazy, because
// each name costs a quarter of a µs. A library makes all of them when it is called for another zone
// than before.
func Lua(which func(word string) bool) string {
	var b strings.Builder
	for _, k := range ZoneKeys {
		kind, _, _ := strings.Cut(k.Name, "<")
		word := strings.TrimSuffix(kind, ":")
		if strings.Count(k.Name, "<") > 1 || !which(word) {
			continue // a longer form of another, or of the other part
		}
		b.WriteString("m.k" + strings.ToUpper(word[:1]) + word[1:] + " = P .. '" + kind + "'\n")
	}
	return b.String()
}

// Usual reports whether a step that only exchanges one job for the next needs this key.
func Usual(word string) bool {
	return strings.Contains(" zone queue again task locks hold events hosts ", " "+word+" ")
}

// Seldom reports whether only a few calls need a key.
func Seldom(word string) bool { return !Usual(word) }

// Every reports true: a library has the names of all keys.
func Every(string) bool { return true }

// ofNodes reports whether nodes write a key.
func (k Key) ofNodes() bool {
	return slices.ContainsFunc(strings.Split(k.Writers, ", "), func(name string) bool {
		return slices.Contains(nodeWriters, name)
	})
}
