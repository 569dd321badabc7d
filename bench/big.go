package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"muster/fleet"
)

// The big house: what it has, and what that may take.
const (
	bigHosts     = 1_000_000
	bigZones     = 10
	bigRead      = 15  // s
	bigSelect    = 300 // ms
	bigBytes     = 1000
	bigCancelled = 1_000_000
	bigCancel    = 3 // s
)

// big measures what is meant for the largest houses: an inventory of a million hosts, and a million
// queued jobs that are cancelled.
func big(ctx context.Context, b *bench) ([]row, error) {
	rows, err := b.bigInventory()
	if err != nil {
		return nil, err
	}
	more, err := b.bigCancel(ctx)
	return append(rows, more...), err
}

func (b *bench) bigInventory() ([]row, error) {
	_, key, err := b.newKey("inventory_host")
	if err != nil {
		return nil, err
	}
	n := b.size(bigHosts)
	text := inventoryText(n, bigZones, key)
	before := heap()
	began := time.Now()
	inv, err := fleet.Parse(fleet.Source{Name: "fleet.yaml", Data: text})
	if err != nil {
		return nil, err
	}
	read := time.Since(began).Seconds()
	bytes := (heap() - before) / float64(n)
	runtime.KeepAlive(text) // it counts before and after
	name := thousands(int64(n)) + " hosts in 10 zones"
	rows := []row{newRow(name+" are read from YAML", "s", []float64{read}).atMost(bigRead),
		newRow(name+": memory", "bytes a host", []float64{bytes}).atMost(bigBytes)}
	for _, s := range selectors(n) {
		took, err := b.selects(inv, s.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.text, err)
		}
		rows = append(rows, newRow(name+", "+s.name, "ms", took).atMost(bigSelect))
	}
	return rows, nil
}

// heap returns the bytes in use.
func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// bigCancel cancels a task of which all jobs wait.
func (b *bench) bigCancel(ctx context.Context) ([]row, error) {
	n := b.size(bigCancelled)
	var took, longest []float64
	for range min(b.rounds, 2) {
		q, err := b.fresh(ctx)
		if err != nil {
			return nil, err
		}
		defer q.Close()
		id, err := put(ctx, q, "true", hostNames(n))
		if err != nil {
			return nil, err
		}
		if err := b.redis.watchSlow(ctx); err != nil {
			return nil, err
		}
		began := time.Now()
		if _, err := q.Cancel(ctx, id, "bench"); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began).Seconds())
		calls, err := b.redis.slow(ctx)
		if err != nil {
			return nil, err
		}
		longest = append(longest, slices.Max(append(calls, millis(slowFrom))))
	}
	name := thousands(int64(n)) + " queued jobs are cancelled"
	return []row{newRow(name, "s", took).atMost(bigCancel),
		newRow(name+": longest call", "ms", longest).atMost(callMax)}, nil
}
