package queue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"muster/jobs"
	"muster/jobs/model"
	"muster/jobs/quarantine"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/form"
)

// dumpAll returns all keys of the zone with their contents, and forgets the events.
var dumpAll = redis.NewScript(`
local out, ends = {}, {}
local v = redis.call('HGETALL', 'test:ends')
for i = 1, #v, 2 do ends[v[i]] = v[i + 1] end
local read = {
  string = function(key) return {redis.call('GET', key)} end,
  hash = function(key) return redis.call('HGETALL', key) end,
  set = function(key) return redis.call('SMEMBERS', key) end,
  zset = function(key) return redis.call('ZRANGE', key, '0', '-1', 'WITHSCORES') end,
  stream = function(key)
    local out = {}
    for _, e in ipairs(redis.call('XRANGE', key, '-', '+')) do out[#out + 1] = e[2][2] end
    return out
  end}
for _, key in ipairs(redis.call('KEYS', KEYS[1] .. '*')) do
  local data = read[redis.call('TYPE', key).ok](key)
  out[#out + 1] = {string.sub(key, #KEYS[1] + 1), ends[key] or '0', data}
end
redis.call('DEL', KEYS[1] .. 'events')
return out`)

// record is the value of a key.
type record struct {
	t       rapid.TB
	key     string
	expires jobs.Micros
	list    []string
	fields  map[string]string // of a hash, or of a zset with its scores
}

func (r *record) take(field string) string {
	v := r.fields[field]
	delete(r.fields, field)
	return v
}

func (r *record) number(field string) int64 {
	v := r.take(field)
	if v == "" {
		return 0
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		r.t.Fatalf("%s: %s is %q: want a number", r.key, field, v)
	}
	return n
}

func (r *record) micros(field string) jobs.Micros { return jobs.Micros(r.number(field)) }
func (r *record) int(field string) int            { return int(r.number(field)) }

func (r *record) duration(field string) time.Duration {
	return time.Duration(r.number(field)) * time.Microsecond
}

// none fails the test if the record has a field that nobody has read.
func (r *record) none() {
	if len(r.fields) > 0 {
		r.t.Fatalf("%s has what the model does not know: %v", r.key, r.fields)
	}
}

// dump reads the zone in Redis in the form of the model.
func (w *twin) dump(t rapid.TB) *model.Zone {
	v, err := dumpAll.Run(context.Background(), w.rdb, []string{"muster:{default}:"}).Slice()
	if err != nil {
		t.Fatal(err)
	}
	z := model.New()
	for _, x := range queue.Texts(v) {
		key := x.([]any)
		r := &record{t: t, key: key[0].(string), fields: map[string]string{}}
		r.expires, _ = jobs.ParseMicros(key[1].(string))
		for _, s := range key[2].([]any) {
			r.list = append(r.list, s.(string))
		}
		for i := 0; i+1 < len(r.list); i += 2 {
			r.fields[r.list[i]] = r.list[i+1]
		}
		kind, name, _ := strings.Cut(r.key, ":")
		readKey(z, r, kind, name)
	}
	return z
}

func readKey(z *model.Zone, r *record, kind, name string) {
	switch kind {
	case "queue":
		z.Queue = readSet[jobs.ID](r)
	case "again":
		z.Again = readSet[jobs.ID](r)
	case "asks":
		z.Asking.Due = readSet[jobs.ID](r)
	case "open":
		z.Reordering.Open = readSet[jobs.TaskID](r)
	case "overload":
		z.Reordering.Lock, z.Reordering.Until = r.list[0], r.expires
	case "held":
		z.Held[jobs.TaskID(name)] = readSet[jobs.ID](r)
	case "wait":
		z.Semaphores.Waits[name] = readSet[string](r)
	case "parked":
		for _, id := range r.list {
			z.Parked[jobs.TaskID(id)] = true
		}
	case "rolling":
		for _, id := range r.list {
			z.Rollouts[jobs.TaskID(id)] = true
		}
	case "sems":
		for _, id := range r.list {
			z.Semaphores.Index[id] = true
		}
	case "task":
		z.Tasks[jobs.TaskID(name)] = readTask(z, r, jobs.TaskID(name))
	case "locks":
		for host, text := range r.fields {
			z.Locks[host] = readLock(r, text)
		}
	case "sem":
		z.Semaphores.Holders[name] = maps.Clone(r.fields)
	case "quarantined":
		z.Semaphores.Aside = maps.Clone(r.fields)
	case "limits":
		for _, field := range slices.Collect(maps.Keys(r.fields)) {
			z.Semaphores.Max[field] = r.int(field)
		}
	case "traits":
		z.Traits[name] = readTraits(r)
	case "hold":
		z.Hold[name] = map[string]model.Hold{}
		for slot, text := range r.fields {
			z.Hold[name][slot] = readHold(r, text)
		}
	case "zone":
		readFlags(z, r)
	case "events":
		z.Events = readEvents(r)
	default:
		r.t.Fatalf("the model does not know the key %s", r.key)
	}
}

func readSet[K ~string](r *record) *model.Set[K] {
	s := &model.Set[K]{Expires: r.expires}
	for id, text := range r.fields {
		at, err := strconv.ParseFloat(text, 64) // the embedded Redis writes 1.76e+15
		if err != nil {
			r.t.Fatalf("%s: %v", r.key, err)
		}
		s.Put(K(id), jobs.Micros(at))
	}
	return s
}

func readJob(r *record, text string) *model.Job {
	j, err := queue.ReadJob(text)
	if err != nil {
		r.t.Fatalf("%s: %v", r.key, err)
	}
	return &j
}

func readLock(r *record, text string) model.Lock {
	words := strings.Fields(text)
	if len(words) != 3 {
		r.t.Fatalf("%s: %q", r.key, text)
	}
	until, _ := jobs.ParseMicros(words[0])
	token, _ := jobs.ParseMicros(words[1])
	return model.Lock{Token: jobs.Token(token), Job: jobs.ID(words[2]), Until: until}
}

func readTask(z *model.Zone, r *record, id jobs.TaskID) *model.Task {
	t := &model.Task{Print: r.take("print"), Chunks: map[int][]string{},
		Head: model.Head{Total: r.int("total"), Chunks: r.int("chunks"), At: r.micros("at")},
		Times: model.Times{Committed: r.micros("committed"), Due: r.micros("due"),
			Expiry: r.micros("expires"), Started: r.micros("started"), Ended: r.micros("ended"),
			Shifted: r.micros("shifted")},
		Paused: model.Switch{Note: r.take("pausedNote"), At: r.micros("paused"),
			ID: r.number("pausedId")},
		Cancel: r.take("cancel"), By: jobs.TaskID(r.take("by")), Running: r.int("running"),
		Done: r.int("done"), Outcomes: map[jobs.Outcome]int{}, Answers: model.Answers{Gates: map[string]string{}},
		Expires: r.expires}
	s := &t.Head.Spec
	if err := json.Unmarshal([]byte(r.take("spec")), s); err != nil {
		r.t.Fatalf("%s: spec: %v", r.key, err)
	}
	r.take("own") // it says where to look for existing records
	t.Rolling = readRolling(r, s.Rollout)
	t.Head.Quarantine = quarantine.Kind(r.take(quarantine.Field))
	guard := r.take("guard")
	t.Head.Guarded = guard != ""
	if d := r.duration("timeout"); d != s.Timeout || r.duration("expire") != s.Expire ||
		r.take("inventory") != s.Inventory || r.take("operator") != s.Operator ||
		r.take("priority") != string(s.Priority) || (guard != "" && guard != codec.Guard(jobs.Task{ID: id, Spec: *s})) ||
		(r.take("repeatable") == "1") != s.Repeatable {
		r.t.Fatalf("%s does not fit its spec", r.key)
	}
	for _, o := range jobs.Outcomes() {
		if n := r.int("o:" + string(o)); n != 0 {
			t.Outcomes[o] = n
		}
	}
	for _, field := range slices.Collect(maps.Keys(r.fields)) {
		if n, ok := strings.CutPrefix(field, "hosts:"); ok {
			chunk, _ := strconv.Atoi(n)
			t.Chunks[chunk] = strings.Split(r.take(field), "\n")
		} else if group, ok := strings.CutPrefix(field, "unproven:"); ok {
			if t.Unproven == nil {
				t.Unproven = map[string]string{}
			}
			t.Unproven[group] = r.take(field)
		} else if at, ok := strings.CutPrefix(field, "turn:"); ok {
			if t.Turns == nil {
				t.Turns = map[jobs.Micros]int{}
			}
			until, _ := jobs.ParseMicros(at)
			t.Turns[until] = r.int(field)
		} else if host, ok := strings.CutPrefix(field, ":"); ok {
			z.Jobs[jobs.NewID(id, host)] = readJob(r, r.take(field))
		} else if gate, ok := strings.CutPrefix(field, "gate:"); ok {
			t.Gates[gate] = r.take(field)
		} else if host, ok := strings.CutPrefix(field, "ask:"); ok {
			if t.Asks == nil {
				t.Asks = map[string]model.Order{}
			}
			t.Asks[host] = readOrder(r, r.take(field))
		}
	}
	r.none()
	return t
}

func readOrder(r *record, text string) (o model.Order) {
	lines := strings.SplitN(text, "\n", 4)
	var at, token string
	if _, err := fmt.Sscan(lines[0], &at, &token, &o.Takes); err != nil || len(lines) != 4 {
		r.t.Fatalf("%s: %q: %v", r.key, text, err)
	}
	o.At, _ = jobs.ParseMicros(at)
	t, _ := jobs.ParseMicros(token)
	o.Token, o.Note, o.Answer, o.Words = jobs.Token(t), lines[1], lines[2], lines[3]
	return o
}

func readRolling(r *record, asked *jobs.Rollout) model.Rolling {
	out := model.Rolling{Allowed: -1, Stopped: model.Switch{Note: r.take("stoppedNote"),
		At: r.micros("stopped")}, Since: r.micros("since"), Fails: strings.Fields(r.take("fails")),
		Accepted: r.int("accepted"),
		Wave:     r.int("wave"), Over: r.micros("over"), Pass: r.int("pass"), Checks: r.take("checks")}
	if _, ok := r.fields["allowed"]; ok {
		out.Allowed = r.int("allowed")
	}
	args := codec.RuleArgs(asked)
	for i := 0; i < len(args); i += 2 {
		switch name := args[i].(string); name {
		case "lenient", "breaker", "waves":
			if v := r.take(name); v != fmt.Sprint(args[i+1]) {
				r.t.Fatalf("%s: %s is %q, want %v", r.key, name, v, args[i+1])
			}
		}
	}
	return out
}

func readTraits(r *record) map[string]model.Traits {
	out := map[string]model.Traits{}
	for host, text := range r.fields {
		words := strings.Fields(text)
		out[host] = model.Traits{Customer: words[0], Group: words[1], Limits: words[2:]}
	}
	return out
}

func readHold(r *record, text string) model.Hold {
	lines := strings.Split(text, "\n")
	h := model.Hold{Jobs: map[jobs.ID]jobs.Token{}}
	var sent, next, status string
	if _, err := fmt.Sscan(lines[0]+" "+lines[1], &h.Request, &sent, &status, &next); err != nil {
		r.t.Fatalf("%s: %q: %v", r.key, text, err)
	}
	h.Sent, _ = jobs.ParseMicros(sent)
	h.Next, _ = jobs.ParseMicros(next)
	h.Status = jobs.Status(status)
	for _, id := range strings.Fields(lines[2]) {
		h.Late = append(h.Late, jobs.ID(id))
	}
	inHand := strings.Fields(lines[3])
	for i := 0; i+1 < len(inHand); i += 2 {
		token, _ := jobs.ParseMicros(inHand[i+1])
		h.Jobs[jobs.ID(inHand[i])] = jobs.Token(token)
	}
	for _, line := range lines[4 : len(lines)-1] {
		g, _, err := codec.ReadGrant(line, "")
		if err != nil {
			r.t.Fatal(err)
		}
		h.Grants = append(h.Grants, g)
	}
	return h
}

func readFlags(z *model.Zone, r *record) {
	z.Flags = model.Flags{Run: r.take("run"), Epoch: r.micros("epoch"), Born: r.micros("born"),
		Freeze: model.Freeze{Until: r.micros("frozen"), Soonest: r.micros("soonest"),
			Why: r.take("why"), Strict: r.take("strict") == "1"},
		High: r.micros("high"), Token: r.micros("token"), Longest: r.duration("longest"),
		Turn: r.int("turn"), Waits: r.micros("waits"), Lifted: r.number("lifted"),
		Halted: model.Switch{Note: r.take("halted"), At: r.micros("haltedAt"),
			ID: r.number("haltedId")},
		Paused: model.Switch{Note: r.take("paused"), At: r.micros("pausedAt"),
			ID: r.number("pausedId")}}
	z.Flags.Jumped = r.micros("jumped")
	if least := r.take(form.Field); least != "" && least != strconv.Itoa(form.Least) {
		r.t.Fatalf("the zone has form %s", least) // the model has one form
	}
	z.Asking.Any = r.take("asks") == "1"
	r.take("quarantine") // whether there are such hosts
	z.Flags.Recorded, z.Flags.Owed = r.take("recorded") == "1", r.take("owed")
	o := &z.Reordering
	o.Changes, o.Seen, o.Walked = r.int("changes"), r.int("changesSeen"), r.micros("walked")
	o.Last = r.take("reordered")
	z.Reordering.Ends.Tasks = r.int("ended:tasks")
	for _, o := range jobs.Outcomes() {
		if n := r.int("ended:" + string(o)); n > 0 {
			z.Reordering.Ends.Jobs[o] = n
		}
	}
	if text := r.take("customers"); text != "" {
		all := map[string]string{}
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			r.t.Fatalf("customers: %v", err)
		}
		for customer, v := range all {
			words := strings.SplitN(v, " ", 3)
			since, _ := jobs.ParseMicros(words[0])
			id, _ := jobs.ParseMicros(words[1])
			z.Customers[customer] = model.Switch{Note: words[2], At: since, ID: int64(id)}
		}
	}
	for _, field := range slices.Collect(maps.Keys(r.fields)) {
		if who, ok := strings.CutPrefix(field, "n:"); ok {
			z.Children[who] = r.micros(field)
		}
	}
	r.none()
}

func readEvents(r *record) (out []model.Event) {
	for _, entry := range r.list {
		for line := range strings.SplitSeq(entry, "\n") {
			words := strings.SplitN(line, " ", 3)
			out = append(out, model.Event{Name: words[0], Object: words[1]})
		}
	}
	slices.SortFunc(out, compareEvents)
	return out
}
