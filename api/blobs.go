package api

import "muster/jobs"

// BlobList is the answer of GET /v1/blobs.
type BlobList struct {
	Blobs []jobs.Blob `json:"blobs"` // most recently used first
	Size  int64       `json:"size"`  // bytes of all contents together
	Max   int64       `json:"max"`   // bytes that all contents together may have
}
