package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"muster/api"
	"muster/jobs"
)

// bannerTimeout bounds the question what stands still, which nobody has asked:
// what was asked for must not wait long for it.
const bannerTimeout = 5 * time.Second

// pauses tells what stands still by order; of a task, what keeps its jobs from
// starting.
func (c *client) pauses(ctx context.Context, task jobs.TaskID) (p api.PauseList, err error) {
	q := url.Values{}
	if task != "" {
		q.Set("task", string(task))
	}
	err = c.do(ctx, call{method: http.MethodGet, path: "/v1/pauses", query: q, bound: bannerTimeout},
		&p)
	return p, err
}

// standing is a line for each order by which something stands still, one for each zone that
// has no node, and one if history is not written. If that cannot be learnt nothing is said: it is
// no part of the answer.
func (c *client) standing(ctx context.Context, task jobs.TaskID) []string {
	p, err := c.pauses(ctx, task)
	if err != nil {
		return nil
	}
	return standingLines(p)
}

func standingLines(p api.PauseList) []string {
	var lines []string
	if p.Halted != "" {
		lines = append(lines, "everything is "+cell(p.Halted))
	}
	for _, zone := range slices.Sorted(maps.Keys(p.Zones)) {
		lines = append(lines, fmt.Sprintf("zone %s is %s", cell(zone), cell(p.Zones[zone])))
	}
	for _, customer := range slices.Sorted(maps.Keys(p.Customers)) {
		lines = append(lines, fmt.Sprintf("customer %s is %s", cell(customer),
			cell(p.Customers[customer])))
	}
	for _, task := range slices.Sorted(maps.Keys(p.Tasks)) {
		lines = append(lines, fmt.Sprintf("task %s is %s", cell(string(task)), cell(p.Tasks[task])))
	}
	for _, zone := range slices.Sorted(maps.Keys(p.NoNode)) {
		lines = append(lines, cell(p.NoNode[zone]))
	}
	if p.History != nil {
		lines = append(lines, cell(p.History.Words()))
	}
	return lines
}

// stands says what keeps jobs of a task from starting, but for what was ordered of the task
// itself, which is told with it.
func (s *session) stands(ctx context.Context, id jobs.TaskID) {
	p, err := s.pauses(ctx, id)
	if err != nil {
		return
	}
	p.Tasks = nil
	for _, line := range standingLines(p) {
		s.say("waits: %s", line)
	}
}

// banner says above a table what stands still by order, and whether history is written.
func (s *session) banner(ctx context.Context) {
	if s.json {
		return
	}
	for _, line := range s.standing(ctx, "") {
		s.say("%s", line)
	}
}
