package plan

import (
	"container/heap"
	"slices"
	"strings"
	"time"

	"muster/jobs"
	"muster/windows"
)

// zone simulates the queue of one zone.
type zone struct {
	*World
	now     time.Time
	free    int      // free slots
	ends    endings  // ends of the running jobs
	later   arrivals // jobs that are not due yet, by due time
	queue   []*item  // due jobs in order; those before head are gone
	head    int
	again   []*item // jobs that were woken, which go before all others
	held    map[string]int
	waiting map[string][]*item // jobs that wait, by the group, limit or host
	closed  map[class]*gate

	reordered time.Time // when the queue was last put into a fair order
	changed   bool      // since then a task came or went, or jobs became due
}

// item is a job in the simulation.
type item struct {
	*Job
	fate  *Fate
	task  int
	class class
	puts  int    // how often it was deferred
	woke  string // the resource for which it was woken
	order int    // its rank by arrival
}

// class identifies jobs for which windows give the same answers.
type class struct {
	task  int
	place windows.Place
	work  windows.Work
}

// gate is the last answer of the windows for a class: jobs may start from opens to shuts.
type gate struct {
	opens, shuts time.Time
	opening      windows.Opening
	never        string // why there is no opening
}

func newZone(w *World, name string) *zone {
	return &zone{World: w, now: w.Now, free: w.Slots[name], held: map[string]int{},
		waiting: map[string][]*item{}, closed: map[class]*gate{}, changed: true}
}

func classOf(w *World, task int, work windows.Work, j *Job) class {
	work.Estimate = j.Takes
	if j.Within > 0 {
		work.Estimate = j.Within
	}
	return class{task: task, place: w.Book.Alike(j.Place), work: work}
}

func (z *zone) add(task int, j *Job, f *Fate) {
	i := &item{Job: j, fate: f, task: task, class: classOf(z.World, task, z.Tasks[task].Work, j),
		order: len(z.later)}
	if j.Busy {
		z.begin(i)
		return
	}
	z.later = append(z.later, arrival{later(z.Now, j.Due), i})
}

// run advances the time until no event is left.
func (z *zone) run() {
	none := z.free == 0 && len(z.ends) == 0
	heap.Init(&z.later)
	for {
		z.arrive()
		for z.free > 0 {
			i := z.next()
			if i == nil {
				break
			}
			z.consider(i)
		}
		at, more := z.event()
		if !more {
			break
		}
		z.now = at
		for len(z.ends) > 0 && !z.ends[0].at.After(at) {
			z.end(heap.Pop(&z.ends).(arrival).item)
		}
	}
	why := TooFar
	if none {
		why = NoSlots
	}
	left := func(list []*item) {
		for _, i := range list {
			if i.fate.End.IsZero() && i.fate.Never == "" {
				i.fate.Never = why
			}
		}
	}
	left(z.queue[z.head:])
	left(z.again)
	for _, a := range z.later {
		left([]*item{a.item})
	}
	for _, list := range z.waiting {
		left(list)
	}
}

// event returns the time of the next event.
func (z *zone) event() (time.Time, bool) {
	var at time.Time
	if len(z.ends) > 0 {
		at = z.ends[0].at
	}
	if len(z.later) > 0 && (at.IsZero() || z.later[0].at.Before(at)) && z.free > 0 {
		at = z.later[0].at
	}
	return at, !at.IsZero()
}

// arrive moves due jobs into the queue.
func (z *zone) arrive() {
	for len(z.later) > 0 && !z.later[0].at.After(z.now) {
		a := heap.Pop(&z.later).(arrival)
		a.Job.Due = a.at
		z.queue = append(z.queue, a.item)
		z.changed = true
	}
	if z.head > len(z.queue)/2 {
		z.queue = append(z.queue[:0], z.queue[z.head:]...)
		z.head = 0
	}
}

// next returns the job that a worker takes. Jobs that were woken come first. If the first job of
// the queue is too late, next puts the queue into a fair order.
func (z *zone) next() *item {
	if len(z.again) > 0 {
		i := z.again[0]
		z.again = z.again[1:]
		return i
	}
	if z.head == len(z.queue) {
		return nil
	}
	o := z.Overload
	if first := z.queue[z.head]; z.changed && z.now.Sub(first.Job.Due) > o.After &&
		!z.now.Before(z.reordered.Add(o.Cooldown)) {
		z.reorder()
	}
	i := z.queue[z.head]
	z.queue[z.head] = nil
	z.head++
	return i
}

// reorder puts the due jobs into the order of workers, see jobs.Arrange.
func (z *zone) reorder() {
	due := z.queue[z.head:]
	backlog := map[int]*jobs.Backlog{}
	var list []jobs.Backlog
	var tasks []int
	for _, i := range due {
		b := backlog[i.task]
		if b == nil {
			t := z.Tasks[i.task]
			b = &jobs.Backlog{Task: z.key(i.task), Operator: t.Operator, Weight: t.Weight,
				Due: jobs.MicrosOf(i.Job.Due)}
			backlog[i.task] = b
			tasks = append(tasks, i.task)
		}
		b.Jobs++
	}
	for _, t := range tasks {
		list = append(list, *backlog[t])
	}
	if len(list) > 1 {
		places := jobs.Arrange(list, z.Overload.FairBy)
		sorted := make([]*item, len(due))
		for _, i := range slices.Backward(due) {
			if at, ok := places.Next(z.key(i.task)); ok {
				sorted[at] = i
			}
		}
		copy(due, sorted)
	}
	z.reordered, z.changed = z.now, false
}

// key returns the id of a task, or a stand-in for the new task, which has none.
func (z *zone) key(task int) jobs.TaskID {
	if id := z.Tasks[task].ID; id != "" {
		return id
	}
	return "new"
}

// consider starts a job, or sets it aside until the resource that it lacks is free.
func (z *zone) consider(i *item) {
	woke := i.woke
	i.woke = ""
	if lack := z.lacks(i); lack != "" {
		z.waiting[lack] = append(z.waiting[lack], i)
		if woke != lack {
			z.wake(woke) // the resource is still free: the next waiter may have it
		}
		return
	}
	g := z.gate(i)
	if i.fate.Never == "" && !g.opens.After(z.now) {
		i.fate.Opening = g.opening
		z.begin(i)
		return
	}
	z.wake(woke)
	switch i.puts++; {
	case i.fate.Never != "":
	case i.puts > opensMax:
		i.fate.Never = TooFar
	default:
		heap.Push(&z.later, arrival{g.opens, i})
	}
}

// gate returns the answer of the windows for a job now; it sets Never in the fate if no window
// ever admits the job.
func (z *zone) gate(i *item) gate {
	g := z.closed[i.class]
	if g != nil && (g.never != "" || g.opens.After(z.now) || !z.now.After(g.shuts)) {
		i.fate.Never = g.never
		return *g
	}
	g = &gate{}
	v := z.Book.Admit(i.class.place, z.now, i.class.work)
	switch {
	case !v.OK && v.Next.IsZero():
		// The answer holds for all jobs of the class, so it names no host.
		g.never = strings.Replace(v.Why, "host :", "these hosts:", 1)
		i.fate.Never = g.never
		z.closed[i.class] = g
	case !v.OK:
		g.opens = v.Next
		z.closed[i.class] = g
	case i.class.work.Window:
		w := i.class.work
		o, _ := z.Book.OpeningAt(i.class.place, z.now, w)
		g.opening, g.shuts = o, o.End.Add(-w.Estimate-w.Reserve)
		if last := o.Cutoff.Add(-time.Microsecond); last.Before(g.shuts) {
			g.shuts = last
		}
		z.closed[i.class] = g
	}
	return *g
}

// lacks returns a resource that a job needs and others hold; empty if there is none.
func (z *zone) lacks(i *item) string {
	if z.held[hostKey(i)] > 0 {
		return hostKey(i)
	}
	for _, name := range i.Holds {
		if z.held[name] >= z.most(name) {
			return name
		}
	}
	return ""
}

// most returns how many jobs may hold a resource; a group has one holder at a time.
func (z *zone) most(name string) int {
	if n, ok := z.Limits[name]; ok {
		return n
	}
	return 1
}

func hostKey(i *item) string { return "host/" + i.Place.Host }

func (z *zone) begin(i *item) {
	z.hold(i, 1)
	z.free--
	i.fate.Start, i.fate.End = z.now, z.now.Add(i.Takes)
	heap.Push(&z.ends, arrival{i.fate.End, i})
}

func (z *zone) hold(i *item, by int) {
	z.held[hostKey(i)] += by
	for _, name := range i.Holds {
		z.held[name] += by
	}
}

// end releases all that a job holds, and wakes one waiter for each resource.
func (z *zone) end(i *item) {
	z.hold(i, -1)
	z.free++
	for _, name := range append([]string{hostKey(i)}, i.Holds...) {
		z.wake(name)
	}
}

// wake wakes one waiter for a resource, if there is one.
func (z *zone) wake(name string) {
	list := z.waiting[name]
	if len(list) == 0 {
		return
	}
	list[0].woke = name
	z.again = append(z.again, list[0])
	if z.waiting[name] = list[1:]; len(list) == 1 {
		delete(z.waiting, name)
	}
}

// arrival is a job with the time at which it is due, or ends.
type arrival struct {
	at time.Time
	*item
}

// arrivals are jobs ordered by time; jobs of equal time keep the order of arrival.
type arrivals []arrival

func (a arrivals) Len() int { return len(a) }
func (a arrivals) Less(i, j int) bool {
	if !a[i].at.Equal(a[j].at) {
		return a[i].at.Before(a[j].at)
	}
	return a[i].order < a[j].order
}
func (a arrivals) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push implements heap.Interface.
func (a *arrivals) Push(x any) { *a = append(*a, x.(arrival)) }

// Pop implements heap.Interface.
func (a *arrivals) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}

// endings are running jobs, ordered by their ends.
type endings = arrivals
