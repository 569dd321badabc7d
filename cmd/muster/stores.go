package main

import (
	"fmt"
	"time"

	"muster/internal/serverkey"
	"muster/jobs/queue"
	"muster/jobs/queue/applies"
	"muster/jobs/queue/blobs"
	"muster/jobs/queue/care"
	"muster/jobs/queue/entries"
	"muster/jobs/queue/firings"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/lanes"
	"muster/jobs/queue/nodes"
	"muster/jobs/queue/orders"
	"muster/jobs/queue/read"
	"muster/jobs/queue/submit"
	"muster/jobs/queue/work"
	"muster/server"
	"muster/trust"
)

// stores returns the handles of the queue that a server needs. keys reads the key of servers, which
// signs what gives power.
func stores(c *queue.Conn, keys func() (serverkey.Keys, error)) server.Stores {
	nodes, account := nodes.New(c), care.NewHistory(c)
	tasks := read.NewTasks(c, nodes, account)
	switches := orders.NewSwitches(c, tasks)
	halts, rollouts := orders.NewHalts(c, switches), orders.NewRollouts(c, switches)
	submits, cancels := submit.NewSubmits(c, tasks), submit.NewCancels(c)
	inventory, store := hub.NewInventory(c), blobs.NewStore(c)
	zones := care.New(c, care.Needs{Work: work.NewWork(c), Halts: halts, Switches: switches,
		Submits: submits, Cancels: cancels, Inventory: inventory})
	applied := applies.New(c, voucher{keys, serverkey.Applies})
	s := server.Stores{Conn: c, Durable: c.Durable(), Form: care.NewForms(c),
		Firings: firings.New(c).VouchedBy(voucher{keys, serverkey.Firings}),
		Kept:    applied, Places: applied,
		Texts: entries.New(c, voucher{keys, serverkey.Entries})}
	s.Read = server.Reads{Tasks: tasks, Jobs: tasks, Waits: tasks,
		Endings: read.NewEndings(tasks), Outputs: read.NewOutputs(c), Zones: read.NewZones(c),
		Groups: read.NewGroups(c), Moves: read.NewMoves(c, tasks)}
	s.Orders = server.Orders{Switches: switches, Halts: halts, Gates: orders.NewGates(c, tasks),
		Exclusion: orders.NewExclusion(c), Rollouts: rollouts, Waves: rollouts,
		Asks: orders.NewAsks(c)}
	lined := lanes.New(c)
	s.Submit = server.Entries{Submits: submits, Cancels: cancels, Lanes: lined, Lined: lined,
		Puts:    submits,
		Retries: submit.NewRetries(c, tasks), Signed: submit.NewSigned(c)}
	s.Hub = hubStores(c, keys)
	s.Hub.Nodes, s.Hub.Inventory, s.Hub.Members = nodes, inventory, inventory
	s.Care = server.Care{Zones: zones, Fsck: care.NewFsck(c), History: account, Outages: account,
		Backlogs: account, Debts: account, Recall: account}
	s.Blobs = server.Contents{Store: store, Care: blobs.NewKeeper(c, store, tasks)}
	return s
}

// A voucher signs texts in the hub by the key of servers, for one use.
type voucher struct {
	keys func() (serverkey.Keys, error)
	use  serverkey.Use
}

// Vouch returns the form of a text to be stored under a name.
func (v voucher) Vouch(name, text string) (string, error) {
	k, err := v.keys()
	return k.Vouch(v.use, name, text), err
}

// Vouched returns the text of a stored form, and why no server has vouched for it.
func (v voucher) Vouched(name, kept string) (string, error) {
	k, err := v.keys()
	if err != nil {
		return kept, fmt.Errorf("%w: %w", queue.ErrKeyAway, err)
	}
	return k.Vouched(v.use, name, kept)
}

// hubStores returns the handles of the hub that no other handle needs.
func hubStores(c *queue.Conn, keys func() (serverkey.Keys, error)) server.Hub {
	timetable, chains, schedules := hub.NewTimetable(c).SignedBy(trust.NewNotary(keys, time.Now)),
		hub.NewChains(c).VouchedBy(voucher{keys, serverkey.Chains}),
		hub.NewSchedules(c).VouchedBy(voucher{keys, serverkey.Schedules})
	return server.Hub{Duties: hub.NewLeaders(c), Facts: hub.NewFacts(c), Drains: hub.NewDrains(c),
		Times: server.Timetables{Texts: timetable, Excerpts: timetable, Zones: timetable,
			Signing: timetable},
		Moves: timetable, Estimates: hub.NewEstimates(c), Agreed: hub.NewAgreed(c).With(timetable),
		Chains: chains, ChainDuty: chains, Schedules: schedules,
		Ticks:  schedules,
		Proofs: server.Proofs{Tokens: hub.NewTokens(c), Sessions: hub.NewSessions(c)}}
}
