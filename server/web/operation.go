package web

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// The bounds of a request's body.
const (
	SubmitMax = 8 << 20  // bytes: all files of a task, and a selector that lists its hosts
	smallMax  = 64 << 10 // bytes of any other body
)

// The bounds of an HTTP exchange. Streams lift theirs and bound each write.
const (
	BodyTimeout = time.Minute
	// AnswerTimeout is more than a client may wait for a task to change.
	AnswerTimeout = waitMax + 30*time.Second
)

// EventStream is the content type of Server-Sent Events.
const EventStream = "text/event-stream"

// HealthPath is the only path that answers strangers.
const HealthPath = "/v1/health"

// JobsMax bounds the jobs that one call to Redis reads.
const JobsMax = 500

// Nothing is the input of a request that has none.
type Nothing struct{}

// Operation describes one route, with the bounds and the errors that all have.
func Operation(method, path, summary string) huma.Operation {
	return huma.Operation{OperationID: huma.GenerateOperationID(method, path, &Nothing{}),
		Method: method, Path: path, Summary: summary,
		MaxBodyBytes: smallMax, BodyReadTimeout: BodyTimeout,
		Errors: []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound,
			http.StatusUnprocessableEntity, http.StatusServiceUnavailable}}
}

// Get describes a route that answers a question.
func Get(path, summary string) huma.Operation { return Operation(http.MethodGet, path, summary) }

// Post describes a route that carries out an order, or makes something.
func Post(path, summary string) huma.Operation { return Operation(http.MethodPost, path, summary) }

// Delete describes a route that removes something.
func Delete(path, summary string) huma.Operation {
	return Operation(http.MethodDelete, path, summary)
}

// Raw returns an operation whose answer is not JSON but of a content type.
func Raw(op huma.Operation, contentType string) huma.Operation {
	op.Responses = map[string]*huma.Response{"200": {Description: "OK",
		Content: map[string]*huma.MediaType{contentType: {Schema: &huma.Schema{Type: huma.TypeString}}}}}
	return op
}
