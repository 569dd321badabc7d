package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A bill is the processor time that a contender's turns cost a process and all its
// children that have ended, in µs for each of its hosts. Unlike a rate it says little
// about who else is at work on the machine.
type bill struct {
	of   string
	pid  int
	less float64 // of the turn in hand: what is not to be counted, in µs
	each []float64
}

// billed makes a contender whose turns are billed.
func billed(c contender, hosts int, bills ...*bill) contender {
	return contender{c.name, func(ctx context.Context) (float64, error) {
		before := make([]float64, len(bills))
		for i, b := range bills {
			var err error
			if before[i], err = processorTime(b.pid); err != nil {
				return 0, err
			}
		}
		x, err := c.run(ctx)
		if err != nil {
			return x, err
		}
		for i, b := range bills {
			after, err := processorTime(b.pid)
			if err != nil {
				return x, err
			}
			b.each = append(b.each, (after-before[i]-b.less)/float64(hosts))
		}
		return x, nil
	}}
}

// processorTime is what a process has used, and its children that have ended, in µs. The
// kernel tells it in hundredths of a second.
func processorTime(pid int) (float64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, err
	}
	// pid (name) state …; the name may hold anything. utime, stime, cutime, cstime are 14 to 17.
	const first, last, tick = 14 - 3, 17 - 3, 10_000
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= last {
		return 0, fmt.Errorf("/proc/%d/stat: %q", pid, text)
	}
	sum := 0.0
	for _, f := range fields[first : last+1] {
		n, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %q", pid, text)
		}
		sum += n * tick
	}
	return sum, nil
}

// billRows are the rows of bills.
func billRows(of string, bills ...*bill) []row {
	var rows []row
	for _, b := range bills {
		rows = append(rows, newRow("processor, "+of+": "+b.of, "µs a host", b.each))
	}
	return rows
}
