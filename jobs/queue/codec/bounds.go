package codec

import (
	"time"
)

// ChunkMax bounds the jobs that one call of a script moves.
const ChunkMax = 500

// HostsMax bounds the hosts of a task in one chunk.
const HostsMax = 200

// TaskKeep is the lifetime of a task: it may be submitted 30 days ahead and wait 30 days more.
const TaskKeep = 70 * 24 * time.Hour

// HeldKeep is the lifetime of a task that was never committed; see put.lua.
const HeldKeep = 24 * time.Hour
