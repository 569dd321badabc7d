package main

import (
	"github.com/spf13/cobra"

	"muster/cli/acl"
	"muster/cli/applies"
	"muster/cli/approvals"
	"muster/cli/arrivals"
	"muster/cli/audits"
	"muster/cli/books"
	"muster/cli/bundle"
	"muster/cli/dnssec"
	"muster/cli/doctor"
	"muster/cli/enroll"
	"muster/cli/founding"
	"muster/cli/hosts"
	"muster/cli/lanes"
	"muster/cli/login"
	"muster/cli/notices"
	"muster/cli/ops"
	"muster/cli/orders"
	"muster/cli/repositories"
	"muster/cli/rights"
	"muster/cli/standing"
	"muster/cli/tasks"
	"muster/cli/times"
	"muster/cli/upgrades"
)

// clientCommands returns the commands of operators. They talk to a server, and to nothing else.
func clientCommands() []*cobra.Command {
	work := []*cobra.Command{tasks.NewRun(), tasks.NewExec(), ops.NewPlan(), tasks.NewWait(),
		orders.NewRetry(), orders.NewCancel(),
		orders.NewPause(), orders.NewResume(), orders.NewHalt(), orders.NewRollout(), orders.NewGate(),
		approvals.New(), times.NewSchedules(), hosts.NewSSH(), enroll.NewClear(),
		applies.NewApply(), applies.NewExport()}
	look := []*cobra.Command{tasks.NewTasks(), tasks.NewTask(), tasks.NewJobs(), tasks.NewJob(),
		tasks.NewLogs(), tasks.NewEvents(),
		hosts.NewHosts(), ops.NewNodes(), ops.NewQueue(), hosts.NewGroup(), hosts.NewLimits(),
		lanes.New(), dnssec.New(),
		times.NewWindows(), ops.NewRestore(),
		books.NewRunbooks(), books.NewBlob(), hosts.NewFacts(), ops.NewHistory(), ops.NewReport(),
		audits.NewAudit(), notices.New(), standing.New(), arrivals.New(),
		repositories.New(),
		ops.NewWhoami(), rights.NewAccess(), ops.NewToken(),
		login.NewLogin(), login.NewLogout(), login.NewSession(), founding.New(), newTrust(), acl.New(),
		newAdmin(), newBackup(), tasks.NewSecrets(), ops.NewHealth(), ops.NewFsck(), doctor.New(),
		bundle.New(), upgrades.New()}
	for _, c := range work {
		c.GroupID = "work"
	}
	for _, c := range look {
		c.GroupID = "look"
	}
	return append(work, look...)
}
