package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/reach"
	"muster/fleet"
	"muster/fleet/remote"
)

// liveFlags are the flags of hosts check --live.
type liveFlags struct {
	live     bool
	sudo     bool
	parallel int
	within   time.Duration
	reach.KeyFlags
}

// withLive adds the check of the hosts themselves to a command.
func withLive(c *cobra.Command) *cobra.Command {
	var f liveFlags
	offline := c.RunE
	c.Use += " | SELECTOR --live"
	c.Long += `

With --live it connects to the hosts of a selector instead, from this machine as
workers do, drained ones too. It checks the connection, the host key, the login, sudo
(with --sudo), the clock, disk space, and whether the host can keep a record of
attempts, and shows for each host what is wrong and what to do. It changes nothing
there. Hosts with the same trouble are listed together. The exit code is 1 if a host is
not well.`
	c.Example += `
  muster hosts check all --live
  muster hosts check 'customer=acme' --live --sudo -o json`
	fl := c.Flags()
	fl.BoolVar(&f.live, "live", false,
		"connect to the hosts of a selector and show what is wrong with each")
	fl.BoolVar(&f.sudo, "sudo", false, "with --live: the hosts must allow sudo without a password")
	fl.IntVar(&f.parallel, "parallel", reach.Parallel, "with --live: so many `hosts` at a time")
	fl.DurationVar(&f.within, "within", time.Minute, "with --live: the most `time` for one host")
	f.Add(c)
	cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		on, err := f.check(ctx, s, args)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return checkLive(ctx, s, f, on)
	})
	online := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.live {
			return online(c, args)
		}
		return offline(c, args)
	}
	return c
}

// check reads the selector and reports all mistakes in the flags.
func (f liveFlags) check(ctx context.Context, s *cli.Session, args []string) (on string,
	err error) {
	on, err = s.SelectorArg(ctx, args, cli.OrSayAll)
	if err == nil && on == "" {
		err = errors.New("--live: name the hosts with a selector, or say all")
	}
	errs := []error{err, reach.CheckParallel(f.parallel)}
	if f.within < time.Second || f.within > time.Hour {
		errs = append(errs, fmt.Errorf("--within %s: want 1s to 1h", f.within))
	}
	return on, errors.Join(errs...)
}

// Checked holds the findings about a host.
type Checked struct {
	Host     string    `json:"host"`
	Address  string    `json:"address"`
	Well     bool      `json:"well"`
	Findings []finding `json:"findings"`
	Seconds  float64   `json:"seconds"`
}

func checkLive(ctx context.Context, s *cli.Session, f liveFlags, on string) error {
	l, err := s.Hosts(ctx, api.HostQuery{On: on, Drained: true})
	if err != nil {
		return err
	}
	client, err := f.Client()
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	defer client.Close()
	list := make([]Checked, len(l.Hosts))
	progress := liveProgress{Screen: s.Screen, total: len(list)}
	reach.Each(ctx, f.parallel, len(list), func(i int) {
		list[i] = checkHost(ctx, client, f, l.Hosts[i])
		progress.note(list[i].Well)
	})
	progress.end()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.JSON {
		err = s.WriteJSON(list)
	} else {
		err = s.Write(checkedText(list, s.Colours))
	}
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(c Checked) bool { return !c.Well }) {
		return cli.ExitWith(cli.ExitNotAll)
	}
	return nil
}

// checkHost connects to a host, asks it, and judges the answers.
func checkHost(ctx context.Context, client *remote.Client, f liveFlags, h fleet.Host) Checked {
	ctx, cancel := context.WithTimeoutCause(ctx, f.within,
		fmt.Errorf("it was not done within %s", f.within))
	defer cancel()
	begun := time.Now()
	findings := visitHost(ctx, client, f, h)
	c := Checked{Host: h.Name, Address: reach.Address(h), Findings: findings, Well: true,
		Seconds: time.Since(begun).Round(time.Millisecond).Seconds()}
	for _, one := range findings {
		c.Well = c.Well && !one.Wrong
	}
	return c
}

func visitHost(ctx context.Context, client *remote.Client, f liveFlags, h fleet.Host) []finding {
	conn, err := client.Connect(ctx, f.Key(h))
	if err != nil {
		return []finding{connectFinding(err)}
	}
	defer conn.Close()
	if h.BecomesUser() == "" {
		p := newHostProbe(client.RecordDir(), f.sudo)
		said, code, err := p.ask(ctx, conn, "sh")
		return p.judge(h, said, code, err)
	}
	command, err := sudoCommand(h)
	if err != nil {
		return []finding{{What: "sudo", Text: err.Error(), Wrong: true, Do: "look at become_user"}}
	}
	p := newHostProbe(client.RecordDir(), false)
	said, code, err := p.ask(ctx, conn, command)
	if err == nil && !p.ended(said) {
		return append(p.withoutSudo(ctx, conn, h), sudoFinding(h, said))
	}
	return p.judge(h, said, code, err)
}

// bounded keeps the first part of a host's output.
type bounded struct {
	mu   sync.Mutex
	kept []byte // guarded by mu
}

const boundedMax = 64 << 10 // bytes

// Write keeps as much as there is room for, and drops the rest.
func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = append(b.kept, p[:min(len(p), boundedMax-len(b.kept))]...)
	return len(p), nil
}

func (b *bounded) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.kept)
}

// checkedText lists hosts with the same findings together: errors first, larger groups first.
func checkedText(list []Checked, colours cli.Palette) string {
	hosts := map[finding][]string{}
	well := 0
	for _, c := range list {
		if c.Well {
			well++
		}
		for _, one := range c.Findings {
			hosts[one] = append(hosts[one], c.Host)
		}
	}
	order := make([]finding, 0, len(hosts))
	for one := range hosts {
		order = append(order, one)
	}
	slices.SortFunc(order, func(a, b finding) int {
		if a.Wrong != b.Wrong {
			return map[bool]int{true: -1, false: 1}[a.Wrong]
		}
		if n := len(hosts[b]) - len(hosts[a]); n != 0 {
			return n
		}
		return strings.Compare(a.What+a.Text, b.What+b.Text)
	})
	var b strings.Builder
	for _, one := range order {
		colour := cli.Dim
		if one.Wrong {
			colour = cli.Red
		}
		fmt.Fprintf(&b, "%s: %s: %s\n", cli.Count(len(hosts[one]), "host"),
			cli.Cell(fleet.Fold(hosts[one])),
			colours.Paint(colour, cli.Cell(one.What+": "+one.Text)))
		if one.Do != "" {
			fmt.Fprintf(&b, "  %s\n", cli.Cell(one.Do))
		}
	}
	fmt.Fprintf(&b, "%d of %s well\n", well, cli.Count(len(list), "host"))
	return b.String()
}

// liveProgress draws the progress of a check over the line before.
type liveProgress struct {
	*cli.Screen
	mu          sync.Mutex
	total       int
	done, wrong int // guarded by mu
}

func (p *liveProgress) note(well bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if !well {
		p.wrong++
	}
	if p.ErrTerm {
		fmt.Fprintf(p.Err, "\r\x1b[K%d of %s, %d with something wrong", p.done,
			cli.Count(p.total, "host"), p.wrong)
	}
}

func (p *liveProgress) end() {
	if p.ErrTerm {
		fmt.Fprint(p.Err, "\r\x1b[K")
	}
}
