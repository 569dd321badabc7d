package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// A tool is a command that hosts have.
type tool func(c *call) Status

// allTools returns the commands of every machine.
func allTools() map[string]tool {
	none := func(*call) Status { return Status{} }
	return map[string]tool{
		"cat": runCat, "chmod": runChmod, "cp": runCp, "date": runDate, "flood": runFlood,
		"head": runHead, "id": runID, "ls": runLs, "mkdir": runMkdir, "mv": runMv, "nft": runNft,
		"nohup": runSetsid, "reboot": runReboot, "rm": runRm, "rmdir": runRmdir, "seq": runSeq,
		"setsid": runSetsid, "sh": runSh, "sha256sum": runSha256sum, "sleep": runSleep,
		"sync": none, "timeout": runTimeout, "touch": runTouch, "true": none, "uname": runUname,
		"uptime": runUptime, "wc": runWc, "which": runWhich, "yes": runYes,
		"hostname": func(c *call) Status { return c.say("%s\n", c.machine.config.Name) },
	}
}

// runWhich answers command -v.
func runWhich(c *call) Status {
	for _, name := range c.args {
		if _, ok := c.machine.config.Model.tools[toolName(name)]; !ok {
			return Status{Code: 127}
		}
		c.say("%s\n", name)
	}
	return Status{}
}

// runSetsid runs a command that nobody waits for and that no signal reaches except at the end of
// the machine.
func runSetsid(c *call) Status {
	if len(c.args) == 0 {
		return c.fail(1, "no command specified")
	}
	d := c.machine.newProcess(c.machine.power(), Command{In: nowhere{}})
	one := *c
	one.process, one.ctx, one.in = d, d.ctx, nil
	c.machine.daemons.Go(func() {
		defer c.machine.processes.drop(d)
		one.invoke(one.args)
		d.asides.wait()
	})
	return Status{}
}

// runSh supports sh -c TEXT, sh FILE and sh -s.
func runSh(c *call) Status {
	s := script{streams: c.streams, dir: c.dir, env: c.env, args: c.args}
	if _, ours := c.in.(reader); ours {
		s.in = nil
	}
	given := ""
	for len(s.args) > 0 && strings.HasPrefix(s.args[0], "-") {
		given, s.args = given+s.args[0][1:], s.args[1:]
	}
	switch {
	case strings.Contains(given, "c") && len(s.args) == 0:
		return c.fail(2, "-c requires an argument")
	case strings.Contains(given, "c"):
		s.text, s.args = s.args[0], s.args[min(2, len(s.args)):]
	case strings.Contains(given, "s") || len(s.args) == 0:
		text, err := io.ReadAll(io.LimitReader(c.in, textMax))
		if err != nil {
			return c.fail(2, "%s", err)
		}
		s.text = string(text)
	default:
		text, err := c.machine.disk().read(c.path(s.args[0]))
		if err != nil {
			return c.fail(2, "cannot open %s: %s", s.args[0], err)
		}
		s.text, s.args = string(text), s.args[1:]
	}
	if strings.Contains(given, "e") {
		s.text = "set -e\n" + s.text
	}
	return c.sh(c.ctx, s)
}

// textMax bounds a script that comes on stdin.
const textMax = 256 << 10

func runSeq(c *call) Status {
	first, last := 1, 0
	var err error
	if len(c.args) == 2 {
		first, err = strconv.Atoi(c.args[0])
	}
	if err == nil && len(c.args) > 0 {
		last, err = strconv.Atoi(c.args[len(c.args)-1])
	}
	if err != nil || len(c.args) < 1 || len(c.args) > 2 {
		return c.fail(1, "want one or two whole numbers")
	}
	for i := first; i <= last; i++ {
		if _, err := fmt.Fprintln(c.out, i); err != nil {
			break
		}
	}
	return Status{}
}

func runYes(c *call) Status { return c.repeat("y\n", math.MaxInt64) }

// runFlood prints so many bytes of plain lines.
func runFlood(c *call) Status {
	if len(c.args) != 1 {
		return c.fail(1, "want a number of bytes")
	}
	n, err := strconv.ParseInt(c.args[0], 10, 64)
	if err != nil || n < 0 {
		return c.fail(1, "invalid number '%s'", c.args[0])
	}
	return c.repeat(floodLine, n)
}

// floodLine has 64 bytes.
const floodLine = "all work and no play makes a firewall a very very dull machine.\n"

// repeat prints a line again and again, n bytes in all.
func (c *call) repeat(line string, n int64) Status {
	block := bytes.Repeat([]byte(line), chunkMax/len(line)+1)
	for n > 0 {
		part := block[:min(n, int64(len(block)))]
		if c.steps.Add(1) > stepsMax {
			return Status{Signal: sigKill}
		}
		if _, err := c.out.Write(part); err != nil {
			return Status{Code: 1}
		}
		n -= int64(len(part))
	}
	return Status{}
}

func runSleep(c *call) Status {
	var total time.Duration
	for _, a := range c.args {
		d, err := parseSpan(a)
		if err != nil {
			return c.fail(1, "%s", err)
		}
		total += d
	}
	if len(c.args) == 0 {
		return c.fail(1, "missing operand")
	}
	Pause(c.ctx.Done(), total)
	return Status{}
}

// spanMax bounds a time that a command names, so that sums of it cannot overflow.
const spanMax = 365 * 24 * time.Hour

var units = map[string]time.Duration{
	"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

// parseSpan reads a time as sleep and timeout do: seconds, or a number with s, m, h or d.
func parseSpan(s string) (time.Duration, error) {
	digits, unit := s, time.Second
	for name, u := range units {
		if d, ok := strings.CutSuffix(s, name); ok {
			digits, unit = d, u
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if (err != nil && !errors.Is(err, strconv.ErrRange)) || !(n >= 0) {
		return 0, fmt.Errorf("invalid time interval '%s'", s)
	}
	return time.Duration(math.Min(n*float64(unit), float64(spanMax))), nil
}

// parseBound reads the arguments of timeout: -k TIME, -s SIGNAL, a time and a command.
func parseBound(args []string) (b bound, words []string, err error) {
	for len(args) > 1 && (args[0] == "-k" || args[0] == "-s") {
		if args[0] == "-s" {
			b.hard = strings.TrimPrefix(args[1], "SIG") == sigKill
		} else if b.grace, err = parseSpan(args[1]); err != nil {
			return b, nil, err
		}
		args = args[2:]
	}
	if len(args) < 2 {
		return b, nil, errors.New("missing operand")
	}
	b.after, err = parseSpan(args[0])
	return b, args[1:], err
}

func runTimeout(c *call) Status {
	b, words, err := parseBound(c.args)
	if err != nil {
		return c.fail(125, "%s", err)
	}
	return c.bounded(c.ctx, b, func(ctx context.Context) Status {
		one := *c
		one.ctx = ctx
		if _, ours := c.in.(reader); ours {
			one.in = nil
		}
		return one.invoke(words)
	})
}
