package ops

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

// NewHealth makes the command health.
func NewHealth() *cobra.Command {
	c := &cobra.Command{
		Use:   "health",
		Short: "Show whether the server is well",
		Long: `health asks the server for its state, and whether its Redis accepts new data. The line
status names what keeps work from starting: a zone that lacks the timetable in force; a
Redis that may have forgotten jobs that have ended, or has lost windows, schedules or
orders; a zone that is frozen, as for some minutes after a restart of Redis; a halt, so
that nobody forgets it; a zone without a node that has work, or had a node before (a new
installation has neither, and is well). Pauses of tasks, customers and zones are no
alarm: 'muster queue' shows them. health also shows trouble that keeps nothing from
starting: history that is not written, an inventory that was refused.

Exit codes: 0 the status is ok, 1 it is not, 3 the server does not answer.`,
		Example:           "  muster health",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		h, well, err := health(ctx, s.Client)
		if err != nil {
			return err
		}
		if s.JSON {
			err = s.WriteJSON(h)
		} else {
			err = s.Write(healthText(h))
		}
		if err != nil || well {
			return err
		}
		return cli.Exit(cli.ExitNotAll, nil)
	})
}

// health returns the health of a server. A server that cannot work answers with 503 and the same
// body.
func health(ctx context.Context, c *cli.Client) (h api.Health, well bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, cli.CallTimeout)
	defer cancel()
	r, err := c.Exchange(ctx, cli.Call{Method: http.MethodGet, Path: "/v1/health",
		Bound: cli.CallTimeout})
	if err != nil {
		return h, false, err
	}
	defer r.Body.Close()
	answers := r.StatusCode == http.StatusOK
	if !answers &&
		(r.StatusCode != http.StatusServiceUnavailable || cli.MediaType(r) != "application/json") {
		return h, false, c.Refused(r)
	}
	text, err := c.ReadAll(r.Body)
	if err != nil {
		return h, false, err
	}
	if err := json.Unmarshal(text, &h); err != nil || h.Status == "" {
		return h, false, c.Nonsense("its answer has no status")
	}
	return h, answers && h.Status == "ok" && !h.Doubt && !h.Stopped, nil
}

func healthText(h api.Health) string {
	hosts := ""
	if h.Inventory != "" {
		hosts = strconv.Itoa(h.Hosts)
	}
	quarantined := ""
	if h.Quarantined > 0 {
		quarantined = cli.Count(h.Quarantined, "host")
	}
	return cli.Details(
		[2]string{"status", cli.Cell(h.Status)},
		[2]string{"version", cli.Cell(h.Version)},
		[2]string{"redis", cli.Cell(h.Redis)},
		[2]string{"inventory", cli.Cell(h.Inventory)},
		[2]string{"hosts", hosts},
		[2]string{"in quarantine", quarantined},
	)
}
