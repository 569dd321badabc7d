package api

import "muster/jobs"

// BlobList is the answer of GET /v1/blobs.
type BlobList struct {
	Blobs []jobs.Blob `json:"blobs"` // the one used last first
	Size  int64       `json:"size"`  // bytes of all
	Max   int64       `json:"max"`   // bytes that all may have
}
