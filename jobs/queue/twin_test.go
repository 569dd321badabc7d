package queue_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"muster/jobs"
	"muster/jobs/model"
	"muster/jobs/quarantine"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
)

// pretend stands in front of the scripts. It gives them the time in KEYS 2 and lets keys expire by
// that time, and breaks a script off before its write number KEYS 3.
const pretend = `
local redis = (function()
  local call, now, stop, writes = redis.call, tonumber(KEYS[2]), tonumber(KEYS[3]), 0
  local ENDS = 'test:ends' -- key to when it expires
  local CHANGES = {}
  for w in string.gmatch('SET DEL HSET HDEL HINCRBY ZADD ZREM SADD SREM PEXPIRE PERSIST XADD ' ..
    'PUBLISH', '%S+') do CHANGES[w] = true end
  local function text(n) return string.format('%d', n) end
  local v = call('HGETALL', ENDS)
  for i = 1, #v, 2 do
    if tonumber(v[i + 1]) <= now and string.sub(v[i], 1, 7) == 'muster:' then
      call('DEL', v[i])
      call('HDEL', ENDS, v[i])
    end
  end
  local function expire(key, ms)
    if call('EXISTS', key) == 1 then call('HSET', ENDS, key, text(now + tonumber(ms) * 1000)) end
  end
  local function done(...)
    for _, key in ipairs({...}) do
      if call('EXISTS', key) == 0 then call('HDEL', ENDS, key) end
    end
  end
  local own = {}
  function own.TIME() return {text(math.floor(now / 1000000)), text(now % 1000000)} end
  function own.PTTL(key)
    local at = call('HGET', ENDS, key)
    return at and math.floor((tonumber(at) - now) / 1000) or -2
  end
  function own.PEXPIRE(key, ms) expire(key, ms) end
  function own.PERSIST(key) call('HDEL', ENDS, key) end
  function own.SET(key, value, ...)
    local more = {...}
    if more[1] == 'NX' and call('EXISTS', key) == 1 then return false end
    call('SET', key, value)
    expire(key, more[#more])
  end
  function own.DEL(...)
    call('DEL', ...)
    done(...)
  end
  return {call = function(name, key, ...)
    if CHANGES[name] then
      writes = writes + 1
      if writes == stop then error('broken off') end
    end
    if own[name] then return own[name](key, ...) end
    local r = call(name, key, ...)
    if name == 'ZREM' or name == 'HDEL' then done(key) end
    return r
  end}
end)()
`

// A twin is a zone in Redis and the same zone in the model.
type twin struct {
	rdb     *redis.Client
	scripts map[string]queue.Behind
	zone    *model.Zone
	now     jobs.Micros
	stop    int  // break the next call off before this write; 0: do not
	broken  bool // a call was broken off
	calls   []string
}

func newTwin(t testing.TB, addr string) *twin { return newTwinOf(t, addr, queue.ScriptBehind) }

// newTwinOf is newTwin with scripts that behind returns.
func newTwinOf(t testing.TB, addr string, behind func(text, name string) queue.Behind) *twin {
	w := &twin{rdb: redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, MaxRetries: -1}),
		scripts: map[string]queue.Behind{}}
	t.Cleanup(func() { w.rdb.Close() })
	for _, name := range []string{"put", "step", "checkpoint", "lose", "end", "move", "epoch", "control",
		"reorder", "roll", "appoint", "recall", "ask"} {
		w.scripts[name] = behind(pretend, name)
	}
	return w
}

// reset empties the zone and publishes an inventory.
func (w *twin) reset(t rapid.TB) {
	w.zone, w.now, w.stop, w.broken = model.New(), jobs.Micros(1_760_000_000_000_000), 0, false
	w.calls = nil
	w.rdb.FlushAll(context.Background())
	w.zone.Traits["v1"] = map[string]model.Traits{}
	for i := range 6 {
		traits := model.Traits{Customer: "acme", Group: fmt.Sprint("pair-", i/2)}
		switch i {
		case 1, 4:
			traits.Customer, traits.Limits = "beta", []string{"site/a"}
		case 2, 3:
			traits.Limits = []string{"site/a", "site/b"}
		case 5:
			continue // a set without scores
		}
		w.zone.Traits["v1"][host(i)] = traits
		text := strings.Join(append([]string{traits.Customer, traits.Group}, traits.Limits...), " ")
		w.rdb.HSet(context.Background(), "muster:{default}:traits:v1", host(i), text)
	}
}

func host(i int) string { return fmt.Sprint("fw", i) }

// call calls a script. It returns false if the script broke off; then the model adopts the state in
// Redis.
func (w *twin) call(t rapid.TB, name string, args ...any) ([]any, bool) {
	v, err := w.scripts[name].Call(context.Background(), w.rdb, zone,
		[]string{w.now.String(), fmt.Sprint(w.stop)}, args...)
	stopped := w.stop
	w.stop = 0
	w.calls = append(w.calls, fmt.Sprintf("%s %s %.200q = %.200q %v", w.now, name, args, v, err))
	switch {
	case err == nil:
		return v, true
	case stopped > 0 && strings.Contains(err.Error(), "broken off"):
		w.zone, w.broken = w.dump(t), true
		w.zone.Events = nil
		return nil, false
	}
	t.Fatalf("%s: %v", name, err)
	return nil, false
}

// copyAll copies each key that begins with KEYS 1 to one that begins with KEYS 2.
var copyAll = redis.NewScript(`
local from, to, ends = KEYS[1], KEYS[2], 'test:ends'
for _, key in ipairs(redis.call('KEYS', to .. '*')) do
  redis.call('DEL', key)
  redis.call('HDEL', ends, key)
end
for _, key in ipairs(redis.call('KEYS', from .. '*')) do
  local copy = to .. string.sub(key, #from + 1)
  redis.call('COPY', key, copy)
  local at = redis.call('HGET', ends, key)
  if at then redis.call('HSET', ends, copy, at) end
end
return 1`)

func (w *twin) copy(t rapid.TB, from, to string) {
	if err := copyAll.Run(context.Background(), w.rdb, []string{from, to}).Err(); err != nil {
		t.Fatal(err)
	}
}

// same compares the answers of both, and then their whole contents.
func (w *twin) same(t rapid.TB, name string, got, want any) {
	if d := differ(want, got, answerOptions); d != "" {
		t.Fatalf("%s answers otherwise than the model (-model +script):\n%s", name, d)
	}
	found := w.dump(t)
	slices.SortFunc(w.zone.Events, compareEvents)
	if d := differ(w.zone, found, zoneOptions); d != "" {
		t.Fatalf("after %s the zone is not as in the model (-model +redis):\n%s", name, d)
	}
	w.zone.Events = nil
}

// differ says how two values differ, or nothing. cmp takes so much longer than a plain look that it
// is asked only where the plain look sees a difference.
func differ(want, got any, options []cmp.Option) string {
	if alike(reflect.ValueOf(want), reflect.ValueOf(got)) {
		return ""
	}
	return cmp.Diff(want, got, options...)
}

// alike reports whether two values are the same up to the last field; a nil map or slice is the same
// as an empty one. Where alike is true, cmp finds no difference with any of these options.
func alike(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return a.IsValid() == b.IsValid() && !a.IsValid()
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
		return alike(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !alike(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		same := a.Len() == b.Len()
		for i := 0; same && i < a.Len(); i++ {
			same = alike(a.Index(i), b.Index(i))
		}
		return same
	case reflect.Map:
		same := a.Len() == b.Len()
		for each := a.MapRange(); same && each.Next(); {
			same = alike(each.Value(), b.MapIndex(each.Key()))
		}
		return same
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		return false // cmp knows
	}
	return a.Equal(b)
}

// A plain look sees each difference that cmp sees.
func TestTwinsThatDifferAreSeen(t *testing.T) {
	zone := func(change func(*model.Zone)) *model.Zone {
		z := model.New()
		z.Queue.Put("a:fw1", 7)
		z.Jobs["a:fw1"] = &model.Job{}
		z.Events = []model.Event{{Name: "take"}}
		z.Semaphores.Waits["x"] = &model.Set[string]{}
		change(z)
		return z
	}
	same := func(*model.Zone) {}
	if d := differ(zone(same), zone(func(z *model.Zone) { z.Parked = nil }), zoneOptions); d != "" {
		t.Errorf("the same zones differ: %s", d)
	}
	for what, change := range map[string]func(*model.Zone){
		"a score":            func(z *model.Zone) { z.Queue.Put("a:fw1", 8) },
		"one more member":    func(z *model.Zone) { z.Queue.Put("a:fw2", 7) },
		"the end of a set":   func(z *model.Zone) { z.Queue.Expires++ },
		"another member":     func(z *model.Zone) { z.Semaphores.Waits["x"].Put("y", 1) },
		"another set":        func(z *model.Zone) { z.Semaphores.Waits["y"] = &model.Set[string]{} },
		"the end of a zone":  func(z *model.Zone) { z.Reordering.Ends.Tasks++ },
		"a job":              func(z *model.Zone) { z.Jobs["a:fw1"].Step++ },
		"one more job":       func(z *model.Zone) { z.Jobs["a:fw2"] = &model.Job{} },
		"the name of a job":  func(z *model.Zone) { z.Jobs["a:fw2"] = z.Jobs["a:fw1"]; delete(z.Jobs, "a:fw1") },
		"an event":           func(z *model.Zone) { z.Events[0].Object = "a" },
		"one more event":     func(z *model.Zone) { z.Events = append(z.Events, z.Events[0]) },
		"a task that parked": func(z *model.Zone) { z.Parked["a"] = true },
	} {
		if differ(zone(same), zone(change), zoneOptions) == "" || cmp.Diff(zone(same), zone(change), zoneOptions...) == "" {
			t.Errorf("%s: no difference is seen", what)
		}
	}
}

func compareEvents(a, b model.Event) int {
	return strings.Compare(a.Name+" "+a.Object, b.Name+" "+b.Object)
}

var answerOptions = []cmp.Option{cmpopts.EquateEmpty(),
	cmpopts.SortSlices(func(a, b jobs.ID) bool { return a < b })}

var zoneOptions = append(answerOptions,
	cmp.Transformer("jobs", plain[jobs.ID]), cmp.Transformer("tasks", plain[jobs.TaskID]),
	cmp.Transformer("names", plain[string]))

// plain shows a set with all that counts.
func plain[K ~string](s *model.Set[K]) (out struct {
	Members map[K]jobs.Micros
	Expires jobs.Micros
}) {
	out.Members = map[K]jobs.Micros{}
	for id, at := range s.All() {
		out.Members[id] = at
	}
	if s != nil {
		out.Expires = s.Expires
	}
	return out
}

func text(v []any, i int) string {
	if i >= len(v) {
		return ""
	}
	return fmt.Sprint(v[i])
}

func number(v []any, i int) (n int) {
	fmt.Sscan(text(v, i), &n)
	return n
}

func (w *twin) epoch(t rapid.TB, h model.Hello) model.Welcome {
	args := []any{h.Run, "", h.Who, h.Longest.Microseconds(), "", h.Since.String(), h.Sent.String()}
	if h.Jumped != 0 {
		args[4] = h.Jumped.Microseconds()
	}
	if h.Knew != 0 {
		args[1] = h.Knew.String()
	}
	for _, in := range h.Jobs {
		args = append(args, string(in.Job), int64(in.Token), in.Left.Microseconds())
	}
	v, ok := w.call(t, "epoch", args...)
	if !ok {
		return model.Welcome{}
	}
	want := w.zone.Epoch(w.now, h)
	longest := time.Duration(number(v, 3)) * time.Microsecond
	w.same(t, "epoch", model.Welcome{Epoch: jobs.Micros(number(v, 0)),
		Frozen: jobs.Micros(number(v, 1)), Now: jobs.Micros(number(v, 2)), Longest: longest}, want)
	return want
}

func (w *twin) put(t rapid.TB, p model.Put) {
	at := ""
	if p.At != 0 {
		at = p.At.String()
	}
	task := jobs.Task{ID: p.Task, At: p.At}
	if p.Own != nil {
		task.Own = map[string]jobs.Micros{"": 1}
		for i, host := range p.Hosts {
			task.Own[host] = p.Own[i]
		}
		at = codec.Times(task, p.Hosts)
	}
	for _, wave := range p.Waves {
		at += fmt.Sprintf("%d*1,", wave)
	}
	args := []any{string(p.Task), p.Print, p.Chunk, at, strings.Join(p.Hosts, "\n")}
	if h := p.Head; h != nil {
		task.Spec, task.At, task.Guarded = h.Spec, h.At, h.Guarded
		spec, err := json.Marshal(h.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if h.Quarantine != "" {
			args = append(args, quarantine.Field, string(h.Quarantine))
		}
		args = append(append(args, codec.HeadArgs(task, h.Total, h.Chunks)...), "spec", string(spec))
	}
	if v, ok := w.call(t, "put", args...); ok {
		status, n := w.zone.Put(w.now, p)
		w.same(t, "put", []any{text(v, 0), number(v, 1)}, []any{status, n})
	}
}

func (w *twin) appoint(t rapid.TB, a model.Appoint) {
	if v, ok := w.call(t, "appoint", codec.AppointArgs(a.Task, a.Moves)...); ok {
		status, n := w.zone.Appoint(w.now, a)
		w.same(t, "appoint", []any{text(v, 0), number(v, 1)}, []any{status, n})
	}
}

func (w *twin) step(t rapid.TB, s model.Step) (jobs.Reply, bool) {
	expected := ""
	if s.Expected != 0 {
		expected = s.Expected.String()
	}
	v, ok := w.call(t, "step", queue.StepArgs(s.Step, expected, s.Sent.String())...)
	if !ok {
		return jobs.Reply{}, false
	}
	got, err := queue.ReadReply(v)
	if err != nil {
		t.Fatal(err)
	}
	want := w.zone.Step(w.now, s)
	w.same(t, "step", got, want)
	return want, true
}

func (w *twin) checkpoint(t rapid.TB, c jobs.Checkpoint) jobs.Verdict {
	v, ok := w.call(t, "checkpoint", string(c.Job), int64(c.Token), c.Step, c.Saved)
	if !ok {
		return ""
	}
	want := w.zone.Checkpoint(w.now, c)
	w.same(t, "checkpoint", jobs.Verdict(text(v, 0)), want)
	return want
}

func (w *twin) lose(t rapid.TB, l model.Loss) {
	v, ok := w.call(t, "lose", l.Node, l.Slot, l.Why, l.Sent.String())
	if !ok {
		return
	}
	ids, stale := w.zone.Lose(w.now, l)
	if stale {
		ids = []jobs.ID{"stale"}
	}
	var got []jobs.ID
	for i := range v {
		got = append(got, jobs.ID(text(v, i)))
	}
	w.same(t, "lose", got, ids)
}

func (w *twin) end(t rapid.TB, e model.Ending) {
	outcome, chunk := jobs.Cancelled, fmt.Sprint(e.Chunk)
	if e.By != "" {
		outcome = jobs.Superseded
	}
	if len(e.Hosts) > 0 {
		chunk = ""
	}
	most := e.Most
	if most == 0 {
		most = 1000
	}
	v, ok := w.call(t, "end", string(e.Task), string(outcome), e.Note, chunk,
		strings.Join(e.Hosts, "\n"), string(e.By), e.From, most)
	if ok {
		w.same(t, "end", model.Ended{Status: text(v, 0), Ended: number(v, 1), Running: number(v, 2),
			Already: number(v, 3), Seen: number(v, 4)}, w.zone.End(w.now, e))
	}
}

func (w *twin) move(t rapid.TB, m model.Move) model.Moved {
	order := ""
	if m.Order >= 0 {
		order = fmt.Sprint(m.Order)
	}
	v, ok := w.call(t, "move", string(m.Task), m.Verb, m.Limit, m.Note, m.Chunk, order)
	if !ok {
		return model.Moved{}
	}
	want := w.zone.Move(w.now, m)
	w.same(t, "move", model.Moved{Status: text(v, 0), Jobs: number(v, 1), Before: text(v, 2)}, want)
	return want
}

func (w *twin) control(t rapid.TB, a model.Turn) {
	n := fmt.Sprint(a.Number)
	if a.Number < 0 {
		n = ""
	}
	if task := w.zone.Tasks[jobs.TaskID(a.Object)]; a.Verb == "guard" && task != nil {
		n = codec.Guard(jobs.Task{ID: jobs.TaskID(a.Object), Spec: task.Head.Spec})
	}
	v, ok := w.call(t, "control", a.Verb, a.Object, a.Note, n)
	if !ok {
		return
	}
	got := model.Turned{Status: text(v, 0), Before: text(v, 1), Number: int64(number(v, 2))}
	w.same(t, "control "+a.Verb, got, w.zone.Control(w.now, a))
}

// ask orders to ask a host, or answers such an order.
func (w *twin) ask(t rapid.TB, a model.Ask) {
	args := []any{"order", string(a.Job), a.Note}
	if a.Reading != nil {
		args = codec.AnswerArgs(*a.Reading, "")
	}
	if v, ok := w.call(t, "ask", args...); ok {
		w.same(t, "ask", model.Asked{Status: text(v, 0), What: text(v, 1)}, w.zone.Ask(w.now, a))
	}
}

// recall writes what history has read, and has not, into the stream, and removes it again before
// the twins are compared.
func (w *twin) recall(t rapid.TB, a model.Recall) model.Recalled {
	heard := w.tell(t, jobs.NewID(a.Task, host(0)))
	unheard := w.tell(t, a.Unheard...)
	args := []any{a.Verb, a.Owed, string(a.Task), heard}
	for _, p := range a.Jobs {
		args = append(args, p.Host, string(p.End.Outcome), string(p.End.Class), p.End.Exit, p.End.Error,
			p.End.Note, p.Attempt, p.Node, p.Began.String(), p.End.At.String())
	}
	v, ok := w.call(t, "recall", args...)
	if !ok {
		return model.Recalled{}
	}
	if err := w.rdb.XDel(context.Background(), eventsKey, heard, unheard).Err(); err != nil {
		t.Fatal(err)
	}
	want := w.zone.Recall(w.now, a)
	w.same(t, "recall "+a.Verb, model.Recalled{Status: text(v, 0), Ended: number(v, 1),
		Lost: number(v, 2)}, want)
	return want
}

const eventsKey = "muster:{default}:events"

// tell writes an entry that mentions these jobs.
func (w *twin) tell(t rapid.TB, about ...jobs.ID) string {
	lines := "shut zone "
	for _, id := range about {
		lines += fmt.Sprintf("\ndefer %s {}", id)
	}
	id, err := w.rdb.XAdd(context.Background(), &redis.XAddArgs{Stream: eventsKey,
		Values: []any{"e", lines}}).Result()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (w *twin) roll(t rapid.TB, a model.Roll) model.Rolled {
	n := fmt.Sprint(a.Number)
	if a.Number < 0 {
		n = ""
	}
	v, ok := w.call(t, "roll", string(a.Task), a.Verb, a.Note, n, a.Text)
	if !ok {
		return model.Rolled{}
	}
	want := w.zone.Roll(w.now, a)
	w.same(t, "roll "+a.Verb, model.Rolled{Status: text(v, 0), Text: text(v, 1), Number: int64(number(v, 2))},
		want)
	return want
}
