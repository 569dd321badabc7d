package server_test

import (
	"muster/jobs/queue/entries"
	"muster/jobs/queue/firings"
	"muster/server"
	"muster/server/apply"
	"muster/server/books"
	"muster/server/calendar"
	"muster/server/duties"
	"muster/server/gitops"
	"muster/server/historian"
	"muster/server/intake"
	"muster/server/lanes"
	"muster/server/orders"
	"muster/server/schedules"
	"muster/server/sessions"
	"muster/server/state"
	"muster/server/stock"
	"muster/server/tasks"
	"muster/server/tokens"
)

// everything has all methods of all handles, as the queue of a test has.
type everything interface {
	server.Conn
	server.Tasks
	server.Jobs
	server.Waits
	tasks.Outputs
	server.Zones
	orders.Groups
	orders.Switches
	orders.Halts
	orders.TaskGates
	orders.Exclusion
	orders.Rollouts
	duties.Openings
	tasks.Asking
	server.Submits
	server.Cancels
	intake.Lanes
	lanes.Kept
	server.Puts
	server.Retrying
	server.Staffing
	server.Elections
	books.Facts
	orders.Drains
	stock.Publishing
	server.Membership
	calendar.Times
	duties.Excerpts
	state.Zoning
	duties.Moves
	server.Estimates
	state.AgreedKept
	server.Chains
	duties.ChainCare
	schedules.Book
	duties.Ticks
	tokens.Store
	sessions.Store
	duties.ZoneCare
	orders.Fsck
	historian.Trimming
	historian.Endings
	historian.Outputs
	historian.Outages
	state.Backlogs
	historian.Debts
	historian.Recalling
	server.SignedOrders
	books.BlobStore
	books.BlobCare
	state.Forms
	Firings() *firings.Book
	Texts() *entries.Store
	apply.Store
	gitops.Places
	stock.Moving
}

// stores deals the methods of q out, so that a test which replaces one of them replaces it in
// the handle that the server calls.
func stores(q everything) server.Stores {
	return server.Stores{Conn: q, Firings: q.Firings(),
		Read: server.Reads{Tasks: q, Endings: q, Jobs: q, Waits: q, Outputs: q, Zones: q, Groups: q,
			Moves: q},
		Orders: server.Orders{Switches: q, Halts: q, Gates: q, Exclusion: q, Rollouts: q, Waves: q,
			Asks: q},
		Submit: server.Entries{Submits: q, Cancels: q, Retries: q, Signed: q,
			Lanes: q, Lined: q, Puts: q},
		Hub: server.Hub{Nodes: q, Duties: q, Facts: q, Drains: q, Inventory: q, Members: q,
			Times: server.Timetables{Texts: q, Excerpts: q, Zones: q}, Moves: q,
			Estimates: q, Agreed: q, Chains: q, ChainDuty: q, Schedules: q, Ticks: q,
			Proofs: server.Proofs{Tokens: q, Sessions: q}},
		Care: server.Care{Zones: q, Fsck: q, History: q, Outages: q, Backlogs: q, Debts: q,
			Recall: q},
		Blobs: server.Contents{Store: q, Care: q}, Form: q, Kept: q, Places: q, Texts: q.Texts()}
}
