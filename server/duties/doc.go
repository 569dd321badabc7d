// Package duties is what one of several servers does for all, without being asked: it cares for
// the queue where no master lives, moves appointments when windows change, opens the waves of
// rollouts, continues chains and fires schedules. Each duty is a struct of its own, with Run and
// RunOnce, and names what it needs.
//
// Which server has a duty is decided in server/election. The duty to write history is a room of
// its own, server/historian.
//
// Floor 5: may import the handles of jobs/queue and what is below.
package duties
