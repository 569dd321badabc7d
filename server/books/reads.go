package books

import (
	"context"
	"io"
	"time"

	"muster/jobs"
)

// Tasks reads one task.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
}

// Work reads the jobs that a host has, among those of the newest tasks.
type Work interface {
	HostWork(ctx context.Context, zone, host string, tasks int) (jobs.HostWork, error)
}

// Facts keeps the facts of hosts.
type Facts interface {
	SaveFacts(ctx context.Context, list []jobs.HostFacts) (saved int, err error)
	Facts(ctx context.Context) (list map[string]jobs.HostFacts, mark string, err error)
	FactsMark(ctx context.Context) (string, error)
	ForgetFacts(ctx context.Context, hosts []string) error
}

// BlobStore has the contents that are too large for a task.
type BlobStore interface {
	PutBlob(ctx context.Context, b jobs.Blob, most int64, content io.Reader) (jobs.Blob, error)
	Blob(ctx context.Context, sum string) (jobs.Blob, error)
	Blobs(ctx context.Context) ([]jobs.Blob, error)
	ReadBlob(ctx context.Context, sum string, w io.Writer) error
	PinBlobs(ctx context.Context, id jobs.TaskID, sums []string) error
}

// BlobCare keeps the contents that tasks need, and removes the rest.
type BlobCare interface {
	RemoveBlob(ctx context.Context, sum string, force bool) error
	TendBlobs(ctx context.Context, grace time.Duration) (removed int, err error)
}
