package queue_test

import (
	"errors"
	"fmt"
	"testing"

	"muster/jobs"
	"muster/jobs/queue"
)

// A server that continues a chain finds the first decisions, and an order of a person during the
// end of the chain is not lost.
func TestAChainIsKept(t *testing.T) {
	eachRedis(t, keepsChains)
}

func keepsChains(t *testing.T, w world) {
	q := open(t, w, "")
	ctx := t.Context()
	c := jobs.Chain{ID: "0weaxx0001", Runbook: "own", Hosts: []string{"a", "b"},
		Do: jobs.Link{Task: "0weaxx0002"}}
	if _, err := q.Chain(ctx, c.ID); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	other := c
	other.Runbook = "other"
	for _, put := range []jobs.Chain{c, other} {
		if kept, err := q.SaveChain(ctx, put); err != nil || kept.Runbook != "own" {
			t.Errorf("%+v, %v", kept, err)
		}
	}
	state := func(want string) jobs.ChainOrders {
		t.Helper()
		o, result, err := q.ChainOrders(ctx, c.ID)
		list, bad := q.Chains(ctx)
		if got := fmt.Sprintf("%+v %v %v", o, result != nil, list); got != want || err != nil || bad != nil {
			t.Errorf("%s, %v, %v, want %s", got, err, bad, want)
		}
		return o
	}
	state("{Missed:0 Begun:false Next: Undo: Broken:} false [0weaxx0001]")
	for _, missed := range []int{1, 2} {
		if err := q.NoteChain(ctx, c.ID, jobs.ChainOrders{Begun: true, Missed: missed}); err != nil {
			t.Error(err)
		}
	}
	seen := state("{Missed:1 Begun:true Next: Undo: Broken:} false [0weaxx0001]")

	// A server wants to end the chain on what it saw; a person has ordered the undo since.
	for _, first := range []bool{true, false} {
		if fresh, err := q.AskChain(ctx, c.ID, jobs.ChainOrders{Undo: "by al"}); err != nil || fresh != first {
			t.Errorf("%v, %v", fresh, err)
		}
	}
	if err := q.EndChain(ctx, c.ID, jobs.ChainInfo{ChainOrders: seen}); err != nil {
		t.Error(err)
	}
	seen = state("{Missed:1 Begun:true Next: Undo:by al Broken:} false [0weaxx0001]")
	if err := q.EndChain(ctx, c.ID, jobs.ChainInfo{ChainOrders: seen}); err != nil {
		t.Error(err)
	}
	state("{Missed:1 Begun:true Next: Undo:by al Broken:} true []")
	if _, err := q.AskChain(ctx, c.ID, jobs.ChainOrders{Next: "by bo"}); err != nil {
		t.Error(err)
	}
	state("{Missed:1 Begun:true Next:by bo Undo:by al Broken:} false [0weaxx0001]")
	if err := q.ForgetChain(ctx, c.ID); err != nil {
		t.Error(err)
	}
	state("{Missed:1 Begun:true Next:by bo Undo:by al Broken:} false []")
}
