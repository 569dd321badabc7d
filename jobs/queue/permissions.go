package queue

import "context"

// Role is what a handle is for, and so which permissions it needs.
type Role string

func (q *Queue) checkPermissions(context.Context) error { return nil }
