// Package doctor has the command doctor, which looks at all things that an installation needs, and
// says what is wrong and what to do.
//
// Floor 12: may import cli/reach, internal/settings, and what is below.
package doctor

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/reach"
)

// New makes the command doctor.
func New() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look at Redis, clocks, keys, disks, SQL, certificates, and say what to do",
		Long: `doctor reads the configuration of this machine and looks at what it names:

  Redis: version, maxmemory, what it keeps of the queue over a restart, its user
  clocks: of Redis and the server against that of this machine, of nodes against Redis
  files with keys and passwords: mode and owner
  certificates that have ended, or end within 30 days
  the disks of node.dir, of the audit log and of a history in SQLite
  the collector of traces: whether it takes a request

Then it asks the server for what only that sees: its health, whether its tables in SQL
can be used, the nodes with their clocks and versions. doctor changes nothing. Run it as
root or as the user muster on each machine: it says what it may not look at.

A finding names what was found, what is expected and what to do. Levels: wrong, warning,
unknown (it could not be looked at), note (nothing to do now), ok.

Exit codes: 0 nothing is to be done, 1 something is wrong, a warning, or unknown, 2 wrong
use.`,
		Example: `  muster doctor
  muster doctor --all
  muster doctor --config /etc/muster/muster.yaml -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	all := false
	conf := reach.AddFileFlags(c)
	c.Flags().BoolVar(&all, "all", false, "also show what is well")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		r := Look(ctx, s, conf)
		var err error
		if s.JSON {
			err = s.WriteJSON(r)
		} else {
			err = s.Write(text(r, all))
		}
		if err == nil && !r.Well {
			return cli.Exit(cli.ExitNotAll, nil)
		}
		return err
	})
}

// Look looks at everything and returns what it found.
func Look(ctx context.Context, s *cli.Session, conf *reach.FileFlags) Report {
	return newReport(cli.Version, examine(ctx, s, conf))
}

// examine looks at everything. A configuration with mistakes still names what to look at.
func examine(ctx context.Context, s *cli.Session, conf *reach.FileFlags) (list []Finding) {
	set, err := conf.Settings()
	if err != nil {
		list = append(list, Finding{Wrong, "configuration", "", err.Error(), "no mistake",
			"correct muster.yaml, or what it names"})
	}
	if set.Redis.URL == "" {
		list = append(list, Finding{Unknown, "configuration", "",
			"Redis, files, certificates and disks were not looked at", "a configuration",
			"correct muster.yaml first"})
	} else {
		list = append(list, lookAtRedis(ctx, set)...)
		list = append(list, lookAtFiles(guardedFiles(set), owners())...)
		list = append(list, lookAtCertificates(set, time.Now())...)
		list = append(list, lookAtDisks(set)...)
		list = append(list, lookAtTraces(ctx, set)...)
	}
	return append(list, lookAtServer(ctx, s)...)
}

// text shows a report to people.
func text(r Report, all bool) string {
	out, well := "", 0
	for _, f := range r.Findings {
		if f.Level == Well {
			if well++; !all {
				continue
			}
		}
		out += string(f.Level) + ": " + cli.Cell(f.Check)
		if f.Object != "" {
			out += " " + cli.Cell(f.Object)
		}
		out += ": " + cli.SaidCell(f.Found) + "\n"
		if f.Expected != "" {
			out += "    expected: " + cli.SaidCell(f.Expected) + "\n"
		}
		if f.Do != "" {
			out += "    to do: " + cli.SaidCell(f.Do) + "\n"
		}
	}
	out += cli.Count(well, "thing") + " well, " + cli.Count(len(r.Findings)-well, "finding") + "\n"
	return out
}
