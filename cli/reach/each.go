package reach

import (
	"context"
	"fmt"
	"sync"
)

const (
	// Parallel bounds the connections at a time from an operator's machine, unless a flag sets
	// another number.
	Parallel    = 32
	parallelMax = 1000
)

// CheckParallel refuses a number of --parallel that makes no sense.
func CheckParallel(n int) error {
	if n < 1 || n > parallelMax {
		return fmt.Errorf("--parallel %d: want 1 to %d", n, parallelMax)
	}
	return nil
}

// Each calls do for 0 to n-1, so many at a time, until ctx is done.
func Each(ctx context.Context, parallel, n int, do func(i int)) {
	next := make(chan int)
	var loops sync.WaitGroup
	for range min(parallel, n) {
		loops.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	loops.Wait()
}
