package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"muster/jobs"
)

const planHosts = 60

// A sample is a task whose end is planned, as an operator submits it.
type sample struct {
	seconds int
	on      string
	flags   []string
}

// foresight is what `muster plan` says of the tasks of the queue, as far as it is compared.
type foresight struct {
	At     jobs.Time `json:"at"`
	Others []planned `json:"others"`
	Takes  []taken   `json:"takes"`
}

type taken struct {
	Successes int `json:"successes"`
}

type planned struct {
	Task jobs.TaskID `json:"task"`
	Done jobs.Time   `json:"done"`
}

// samples are the tasks of a round. The first of them fill all slots.
func samples() []sample {
	lane := func(mode ...string) []string { return append([]string{"--lane", "rules/acme"}, mode...) }
	return []sample{
		{1, "fw[0001-0060]", nil},
		{2, "fw[0001-0040]", []string{"--waves", "4,50%,100%", "--soak", "2s"}},
		{4, "fw[0041-0050]", nil},
		{1, "fw[0001-0020]", lane()},
		{2, "fw[0021-0030]", lane()},
		{1, "fw[0031-0038]", lane("--lane-mode", "gate")},
		{1, "fw[0010-0025]", []string{"--priority", "high"}},
		{2, "fw[0051-0060]", []string{"--at", "+20s"}},
	}
}

// plans compares what `muster plan` says of the ends of tasks in a queue with what happens.
func plans(ctx context.Context, b *bench) (rows []row, err error) {
	hosts, err := b.newHosts(planHosts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hosts.stop()) }()
	h, err := b.newHouse(ctx, nodeSize{children: 4, slots: 4})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	for _, seconds := range []int{1, 2, 4} {
		if err := h.teach(ctx, seconds); err != nil {
			return nil, err
		}
	}
	var off []float64
	for round := range b.rounds {
		more, err := h.planned(ctx)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(b.say, "round %d of %d: ends that a plan missed by %%: %.0f\n", round+1, b.rounds, more)
		off = append(off, more...)
	}
	slices.Sort(off)
	last := off[len(off)*9/10:]
	return []row{
		newRow("end of a task, by how much the plan missed it", "%", off).atMost(10),
		newRow("the same, of nine tasks in ten at most", "%", last[:1]).atMost(25),
	}, nil
}

// teach lets some work succeed, and waits until a plan has an estimate of it.
func (h *house) teach(ctx context.Context, seconds int) error {
	if _, err := h.run(ctx, nil, "run", "exec", "all", "--arg", sleeping(seconds), "--wait", "-o",
		"json"); err != nil {
		return err
	}
	return h.server.until(ctx, 10*look, func() (bool, error) {
		var f foresight
		_, err := h.run(ctx, &f, "plan", "exec", "all", "--arg", sleeping(seconds), "-o", "json")
		return len(f.Takes) > 0 && !slices.ContainsFunc(f.Takes, func(t taken) bool {
			return t.Successes == 0
		}), err
	})
}

func sleeping(seconds int) string { return fmt.Sprintf("cmd=sleep %d", seconds) }

// planned submits the tasks of a round, asks when they will be done, and returns by how much each
// end was missed, in % of the time from the plan to the end.
func (h *house) planned(ctx context.Context) (off []float64, err error) {
	var ids []jobs.TaskID
	for _, s := range samples() {
		var t jobs.TaskInfo
		args := append([]string{"run", "exec", s.on, "--arg", sleeping(s.seconds), "--detach", "-o",
			"json"}, s.flags...)
		if _, err := h.run(ctx, &t, args...); err != nil {
			return nil, err
		}
		ids = append(ids, t.Task)
	}
	var f foresight
	if _, err := h.run(ctx, &f, "plan", "exec", "fw0001", "--arg", sleeping(1), "-o",
		"json"); err != nil {
		return nil, err
	}
	for _, id := range ids {
		var t jobs.TaskInfo
		if _, err := h.run(ctx, &t, "task", string(id), "--wait", "-o", "json"); err != nil {
			return nil, err
		}
		i := slices.IndexFunc(f.Others, func(o planned) bool { return o.Task == id })
		if i < 0 {
			continue // it was over before the plan
		}
		took := t.Finished.Sub(f.At.Time)
		missed := t.Finished.Sub(f.Others[i].Done.Time)
		off = append(off, 100*math.Abs(missed.Seconds())/max(took, time.Second).Seconds())
	}
	return off, nil
}
