package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// calm says how quiet the machine was: what it can do at the most, measured before, in the middle
// of and after all else. Whoever else uses the processors makes these floors differ.
type calm struct {
	Load   float64   `json:"load"`   // of the last minute, before the first section
	Floors []float64 `json:"floors"` // small scripts a second, 16 connections
}

// The limits of a quiet machine.
const (
	loadMost  = 0.75 // processes that want a processor, for each core
	floorMost = 1.15 // the highest floor, of the lowest
)

// floorRuns are the measurements of which each floor is the best: whatever disturbs makes it lower.
const floorRuns = 3

// floor measures the floor once more.
func (b *bench) floor(ctx context.Context, c *calm, when string) error {
	n := b.size(20000)
	best := 0.0
	for range floorRuns {
		x, err := rate("", n, b.floorHeat(n, 16)).run(ctx)
		if err != nil {
			return fmt.Errorf("floor: %w", err)
		}
		best = max(best, x)
	}
	c.Floors = append(c.Floors, best)
	fmt.Fprintf(b.say, "floor of the machine %s: %s small scripts/s\n", when, number(best))
	return nil
}

// quiet reports whether the figures are to be kept.
func (c calm) quiet(cores int) bool {
	return len(c.Floors) > 0 && c.Load <= loadMost*float64(cores) &&
		slices.Max(c.Floors) <= floorMost*slices.Min(c.Floors)
}

// words says how quiet the machine was.
func (c calm) words(cores int) string {
	if len(c.Floors) == 0 {
		return "its floor was not measured"
	}
	var floors []string
	for _, f := range c.Floors {
		floors = append(floors, number(f))
	}
	judged := "quiet"
	if !c.quiet(cores) {
		judged = "not quiet: figures to look at, not to keep"
	}
	return fmt.Sprintf("load %s before; floors at the start, in the middle and at the end: %s small "+
		"scripts/s: %s", number(c.Load), strings.Join(floors, ", "), judged)
}

// loadAverage returns the load of the last minute.
func loadAverage() float64 {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}
