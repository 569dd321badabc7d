package watch

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// bannerTimeout bounds the extra question about pauses: the answer to the person's own question
// must not wait long for it.
const bannerTimeout = 5 * time.Second

// Pauses returns what orders have stopped; with a task, everything that keeps its jobs from
// starting.
func Pauses(ctx context.Context, c *cli.Client, task jobs.TaskID) (p api.PauseList, err error) {
	q := url.Values{}
	if task != "" {
		q.Set("task", string(task))
	}
	err = c.Do(ctx, cli.Call{Method: http.MethodGet, Path: "/v1/pauses", Query: q,
		Bound: bannerTimeout},
		&p)
	return p, err
}

// WouldWait prints what would keep all jobs of some zones from starting now, such as that no node
// serves a zone. An unread answer must not look as if nothing did.
func WouldWait(ctx context.Context, s *cli.Session, zones []string) {
	if len(zones) == 0 {
		return
	}
	var p api.PauseList
	err := s.Do(ctx, cli.Call{Method: http.MethodGet, Path: "/v1/pauses",
		Query: url.Values{"zones": {strings.Join(zones, ",")}}, Bound: bannerTimeout}, &p)
	if err != nil {
		s.Say("whether nodes work on its zones is not known: %s", cli.Cell(err.Error()))
		return
	}
	for _, line := range StandingLines(p) {
		s.Say("would wait: %s", line)
	}
}

// Standing returns a line for each order that stops something, one for each zone without a node,
// and one if history is not written. If that cannot be read it returns nothing, because it is no
// part of the answer.
func Standing(ctx context.Context, c *cli.Client, task jobs.TaskID) []string {
	p, err := Pauses(ctx, c, task)
	if err != nil {
		return nil
	}
	return StandingLines(p)
}

// StandingLines returns a line for each pause, halt and freeze that is in force.
func StandingLines(p api.PauseList) []string {
	var lines []string
	if p.Lost != "" {
		lines = append(lines, "Redis has lost what was agreed ("+cli.Cell(p.Lost)+"): nothing starts, "+
			"and lists show less than there was: `muster restore --dry-run` shows what comes back")
	}
	if p.Halted != "" {
		lines = append(lines, "everything is "+cli.Cell(p.Halted))
	}
	for _, zone := range slices.Sorted(maps.Keys(p.Zones)) {
		lines = append(lines, fmt.Sprintf("zone %s is %s", cli.Cell(zone), cli.Cell(p.Zones[zone])))
	}
	for _, customer := range slices.Sorted(maps.Keys(p.Customers)) {
		lines = append(lines, fmt.Sprintf("customer %s is %s", cli.Cell(customer),
			cli.Cell(p.Customers[customer])))
	}
	for _, task := range slices.Sorted(maps.Keys(p.Tasks)) {
		lines = append(lines, fmt.Sprintf("task %s is %s", cli.Cell(string(task)),
			cli.Cell(p.Tasks[task])))
	}
	for _, zone := range slices.Sorted(maps.Keys(p.NoNode)) {
		lines = append(lines, cli.Cell(p.NoNode[zone]))
	}
	if p.History != nil {
		lines = append(lines, cli.Cell(p.History.Words()))
	}
	return lines
}

// Stands prints what keeps jobs of a task from starting, except for orders about the task itself,
// which are shown with the task.
func Stands(ctx context.Context, s *cli.Session, id jobs.TaskID) {
	p, err := Pauses(ctx, s.Client, id)
	if err != nil {
		return
	}
	p.Tasks = nil
	for _, line := range StandingLines(p) {
		s.Say("waits: %s", line)
	}
}

// Banner prints above a table what orders have stopped, and whether history is written. It reports
// whether Redis has lost what was agreed.
func Banner(ctx context.Context, s *cli.Session) (lost bool) {
	if s.JSON {
		return false
	}
	p, err := Pauses(ctx, s.Client, "")
	if err != nil {
		return false // the banner is no part of the answer
	}
	for _, line := range StandingLines(p) {
		s.Say("%s", line)
	}
	return p.Lost != ""
}
