// Package queuetest gives a test, or a benchmark, all handles of a queue in one value. The
// programs of muster take only the handles that they need.
package queuetest

import (
	"context"

	"muster/jobs/queue"
	"muster/jobs/queue/applies"
	"muster/jobs/queue/blobs"
	"muster/jobs/queue/care"
	"muster/jobs/queue/entries"
	"muster/jobs/queue/firings"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/lanes"
	staffing "muster/jobs/queue/nodes"
	"muster/jobs/queue/orders"
	"muster/jobs/queue/read"
	"muster/jobs/queue/submit"
	"muster/jobs/queue/work"
)

// Each handle is embedded under a name of its own, because many have a method that is named as
// their type is.
type (
	conn      = queue.Conn
	forms     = care.Forms
	store     = blobs.Store
	keeper    = blobs.Keeper
	carer     = care.Care
	fsck      = care.Fsck
	fair      = care.Fair
	account   = care.History
	agreed    = hub.Agreed
	chains    = hub.Chains
	drains    = hub.Drains
	estimates = hub.Estimates
	facts     = hub.Facts
	inventory = hub.Inventory
	lined     = lanes.Lanes
	leaders   = hub.Leaders
	nodes     = staffing.Nodes
	schedules = hub.Schedules
	timetable = hub.Timetable
	tokens    = hub.Tokens
	sessions  = hub.Sessions
	applied   = applies.Store
	asks      = orders.Asks
	exclusion = orders.Exclusion
	gates     = orders.Gates
	halts     = orders.Halts
	rollouts  = orders.Rollouts
	switches  = orders.Switches
	groups    = read.Groups
	endings   = read.Endings
	outputs   = read.Outputs
	tasks     = read.Tasks
	zones     = read.Zones
	moves     = read.Moves
	cancels   = submit.Cancels
	retries   = submit.Retries
	submits   = submit.Submits
	signed    = submit.Signed
	kin       = work.Kin
)

// Queue is a connection with all of its handles.
type Queue struct {
	*conn
	forms
	hubs
	orderers
	readers
	puts
	*store
	*keeper
	*carer
	*fsck
	*fair
	*account
	*kin
	*worker
}

type worker = work.Work

type hubs struct {
	*agreed
	*chains
	*drains
	*estimates
	*facts
	*inventory
	*lined
	*leaders
	*nodes
	*schedules
	*timetable
	*tokens
	*sessions
	*applied
}

type orderers struct {
	*asks
	*exclusion
	*gates
	*halts
	*rollouts
	*switches
}

type readers struct {
	*endings
	*groups
	*outputs
	*tasks
	*zones
	*moves
}

type puts struct {
	*cancels
	*retries
	*submits
	*signed
}

// Firings returns what triggers did, which nobody signs.
func (q *Queue) Firings() *firings.Book { return firings.New(q.conn) }

// Texts returns the entries that are kept as texts, which nobody signs.
func (q *Queue) Texts() *entries.Store { return entries.New(q.conn, unsigned{}) }

// Open opens a connection as queue.Open does, and makes all handles of it.
func Open(ctx context.Context, c queue.Config) (*Queue, error) {
	conn, err := queue.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	return Of(conn), nil
}

// OpenLazy opens a connection as queue.OpenLazy does, and makes all handles of it.
func OpenLazy(c queue.Config) (*Queue, error) {
	conn, err := queue.OpenLazy(c)
	if err != nil {
		return nil, err
	}
	return Of(conn), nil
}

// Of makes all handles of a connection.
func Of(c *queue.Conn) *Queue {
	n, h := staffing.New(c), care.NewHistory(c)
	t, b := read.NewTasks(c, n, h), blobs.NewStore(c)
	s := orders.NewSwitches(c, t)
	q := &Queue{conn: c, forms: care.NewForms(c), store: b, keeper: blobs.NewKeeper(c, b, t), fsck: care.NewFsck(c),
		fair: care.NewFair(c), account: h, kin: work.NewKin(c), worker: work.NewWork(c)}
	q.hubs = hubs{hub.NewAgreed(c), hub.NewChains(c), hub.NewDrains(c), hub.NewEstimates(c),
		hub.NewFacts(c), hub.NewInventory(c), lanes.New(c), hub.NewLeaders(c), n, hub.NewSchedules(c),
		hub.NewTimetable(c), hub.NewTokens(c), hub.NewSessions(c),
		applies.New(c, unsigned{})}
	q.orderers = orderers{orders.NewAsks(c), orders.NewExclusion(c), orders.NewGates(c, t),
		orders.NewHalts(c, s), orders.NewRollouts(c, s), s}
	q.readers = readers{read.NewEndings(t), read.NewGroups(c), read.NewOutputs(c), t, read.NewZones(c),
		read.NewMoves(c, t)}
	q.puts = puts{submit.NewCancels(c), submit.NewRetries(c, t), submit.NewSubmits(c, t),
		submit.NewSigned(c)}
	q.carer = care.New(c, care.Needs{Work: q.worker, Halts: q.halts, Switches: s,
		Submits: q.submits, Cancels: q.cancels, Inventory: q.inventory})
	return q
}

// Prove has the workers of the queue vouch for what they report from now on; nil: for nothing.
func (q *Queue) Prove(p work.Prover) { q.worker = q.worker.ProvedBy(p) }

// unsigned takes every text.
type unsigned struct{}

func (unsigned) Vouch(_, text string) (string, error)   { return text, nil }
func (unsigned) Vouched(_, kept string) (string, error) { return kept, nil }
