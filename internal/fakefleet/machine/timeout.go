package machine

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

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
	if !Pause(c.sh.done(), total) {
		c.broken = ErrKilled
	}
	return Status{}
}

// spanMax bounds a time that a command names, so that sums of it cannot overflow.
const spanMax = 365 * 24 * time.Hour

// parseSpan reads a time as sleep and timeout do: seconds, or a number with s, m,
// h or d.
func parseSpan(s string) (time.Duration, error) {
	unit := time.Second
	digits := s
	if s != "" {
		units := map[byte]time.Duration{
			's': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour,
		}
		if u, ok := units[s[len(s)-1]]; ok {
			unit, digits = u, s[:len(s)-1]
		}
	}
	n, err := strconv.ParseFloat(digits, 64)
	if (err != nil && !errors.Is(err, strconv.ErrRange)) || !(n >= 0) {
		return 0, fmt.Errorf("invalid time interval '%s'", s)
	}
	return time.Duration(math.Min(n*float64(unit), float64(spanMax))), nil
}

// bound is what a timeout command is told.
type bound struct {
	after, grace time.Duration
	kill, keep   bool // send KILL at once; keep the status of the command
	words        []string
}

func parseBound(args []string) (bound, error) {
	var b bound
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		option, value, given := cutOption(args[0])
		args = args[1:]
		if (option == "-k" || option == "-s") && !given {
			if len(args) == 0 {
				return b, fmt.Errorf("option requires an argument -- '%s'", option[1:])
			}
			value, args = args[0], args[1:]
		}
		if option == "--" {
			break
		}
		if err := b.set(option, value); err != nil {
			return b, err
		}
	}
	if len(args) < 2 {
		return b, fmt.Errorf("missing operand")
	}
	var err error
	b.after, err = parseSpan(args[0])
	b.words = args[1:]
	return b, err
}

// cutOption splits -k5 and --kill-after=5.
func cutOption(arg string) (option, value string, given bool) {
	long := map[string]string{
		"--kill-after": "-k", "--signal": "-s", "--preserve-status": "-p", "--foreground": "-f",
		"--verbose": "-v",
	}
	if name, value, ok := strings.Cut(arg, "="); long[name] != "" {
		return long[name], value, ok
	}
	if len(arg) > 2 && (arg[1] == 'k' || arg[1] == 's') {
		return arg[:2], arg[2:], true
	}
	return arg, "", false
}

func (b *bound) set(option, value string) (err error) {
	switch option {
	case "-k":
		b.grace, err = parseSpan(value)
	case "-s":
		name := strings.TrimPrefix(strings.ToUpper(value), "SIG")
		b.kill = name == "KILL" || name == "9"
	case "-p":
		b.keep = true
	case "-f", "-v":
	default:
		err = fmt.Errorf("invalid option -- '%s'", strings.TrimLeft(option, "-"))
	}
	return err
}

// runTimeout follows GNU timeout: 124 if the bound was reached, and killed itself
// by the KILL that it sends to its group.
func runTimeout(c *call) Status {
	b, err := parseBound(c.args)
	if err != nil {
		return c.fail(125, "%s", err)
	}
	child := c.sh.fork()
	if b.after == 0 {
		return child.invoke(b.words)
	}
	inside, alarm := child.group.bounded(b, c.sh.family.stuck)
	table := &c.sh.machine.processes
	child.self = table.number()
	inside.id = child.self
	child.group = inside
	table.add(inside.id, process{inside.id, c.sh.family, alarm.signal})
	st := child.invoke(b.words)
	empty := !c.sh.family.busy()
	fired, killed := alarm.stop(empty)
	if empty {
		table.drop(inside.id)
	} else {
		c.sh.family.left.Store(true)
	}
	if fired {
		c.sh.family.timedOut.Store(true)
	}
	switch {
	case fired && (killed || b.kill) && st.Signal == "KILL":
		return st
	case fired && b.keep:
		return Status{Code: st.seen()}
	case fired:
		return Status{Code: 124}
	}
	return st
}
