package server_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
	"muster/scripts"
	"muster/server"
	"muster/testkit/queuetest"
)

const bring = `
name: bring
arguments:
  image: {type: file, description: what to bring}
steps:
  - {name: bring, upload: {from: image, to: /tmp/image}}
`

func sumOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// putBlob stores a text under a sum.
func (w *world) putBlob(sum, text string, size int) (*http.Response, []byte) {
	w.t.Helper()
	return w.raw("PUT", fmt.Sprintf("/v1/blobs/%s?name=x.bin&size=%d", sum, size), text,
		http.Header{"Content-Type": {"application/octet-stream"}})
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	text := strings.Repeat("hello, blob! ", 100_000) // three chunks
	for range 2 {
		res, body := w.putBlob(sumOf(text), text, len(text))
		var b jobs.Blob
		if err := json.Unmarshal(body, &b); err != nil || res.StatusCode != 200 ||
			b.SHA256 != sumOf(text) || b.By != "alice" || b.Name != "x.bin" {
			t.Fatalf("put: %s, %+v, %v: %s", res.Status, b, err, body)
		}
	}
	var list api.BlobList
	w.call("GET", "/v1/blobs", nil, &list)
	if len(list.Blobs) != 1 || list.Size != int64(len(text)) || list.Max != server.DefaultBlobs().Max {
		t.Errorf("list: %+v", list)
	}
	res, got := w.raw("GET", "/v1/blobs/"+sumOf(text), nil, nil)
	if string(got) != text || res.Header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("get: %s, %d bytes", res.Status, len(got))
	}
	if res := w.call("DELETE", "/v1/blobs/"+sumOf(text), nil, nil); res.StatusCode != 204 {
		t.Errorf("delete: %s", res.Status)
	}
	for _, method := range []string{"GET", "DELETE"} {
		var p problem
		if res := w.call(method, "/v1/blobs/"+sumOf(text), nil, &p); res.StatusCode != 404 ||
			!strings.Contains(p.words(), "muster blob ls") {
			t.Errorf("%s of one that is gone: %s, %s", method, res.Status, p.words())
		}
	}
	w.putBlob(sumOf(""), "", 0)
	if res, got := w.raw("GET", "/v1/blobs/"+sumOf(""), nil, nil); res.StatusCode != 200 || len(got) != 0 {
		t.Errorf("the empty one: %s, %d bytes", res.Status, len(got))
	}
}

func TestBlobsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	for _, c := range []struct {
		name, sum, text string
		size, status    int
		words           string
	}{
		{"no sum", "abc", "x", 1, 422, "want sha256: and 64 hex digits"},
		{"another sum", sumOf("y"), "x", 1, 422, "its sha256 is " + sumOf("x")},
		{"too short", sumOf("x"), "x", 2, 422, "less than 2 bytes"},
		{"too long", sumOf("x"), "xyz", 1, 422, "more than 1 bytes"},
		{"too large", sumOf("x"), "x", 1 << 40, 409, "blobs.max"},
	} {
		res, body := w.putBlob(c.sum, c.text, c.size)
		if res.StatusCode != c.status || !strings.Contains(string(body), c.words) {
			t.Errorf("%s: %s, %s, want %d, %q", c.name, res.Status, body, c.status, c.words)
		}
	}
	var list api.BlobList
	if w.call("GET", "/v1/blobs", nil, &list); len(list.Blobs) != 0 {
		t.Errorf("stored: %+v", list)
	}
}

// A content that was damaged in Redis is not taken for whole.
func TestBlobsThatAreDamagedDoNotArrive(t *testing.T) {
	t.Parallel()
	w := start(t, setup{wrap: damaged})
	w.putBlob(sumOf("hello"), "hello", 5)
	if _, got, err := w.try("GET", "/v1/blobs/"+sumOf("hello"), nil, nil); err == nil {
		t.Errorf("got %q without an error", got)
	}
}

func TestFilesBecomeBlobs(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{bring}})
	large := bytes.Repeat([]byte("x"), scripts.InlineMax+1)
	for _, c := range []struct {
		name string
		body api.Submit
		want int // blobs that the task needs
	}{
		{"small", api.Submit{Files: map[string][]byte{"image": large[1:]}}, 0},
		{"large", api.Submit{Files: map[string][]byte{"image": large}}, 1},
		{"named", api.Submit{Args: map[string]string{"image": "sha256:" + sumOf(string(large))}}, 1},
	} {
		c.body.Runbook, c.body.On = "bring", "fw001"
		task := w.submit(c.body)
		spec, err := w.queue.Spec(t.Context(), task.Task)
		if err != nil {
			t.Fatal(err)
		}
		var f scripts.Frozen
		if err := json.Unmarshal(spec.Action, &f); err != nil || len(f.Blobs()) != c.want {
			t.Errorf("%s: it needs %q, %v", c.name, f.Blobs(), err)
		}
		if c.want > 0 && len(spec.Action) > 10_000 {
			t.Errorf("%s: the task has %d bytes", c.name, len(spec.Action))
		}
	}
	// They are kept for those tasks, and a task does not find one that is gone.
	var p problem
	sum := sumOf(string(large))
	if res := w.call("DELETE", "/v1/blobs/"+sum, nil, &p); res.StatusCode != 409 {
		t.Errorf("delete of one that is needed: %s, %s", res.Status, p.words())
	}
	if res := w.call("DELETE", "/v1/blobs/"+sum+"?force=true", nil, nil); res.StatusCode != 204 {
		t.Errorf("delete by force: %s", res.Status)
	}
	again := api.Submit{Runbook: "bring", On: "fw001", Args: map[string]string{"image": "sha256:" + sum}}
	if res := w.call("POST", "/v1/tasks", again, &p); res.StatusCode != 422 ||
		!strings.Contains(p.words(), "muster blob put FILE") {
		t.Errorf("submit without the blob: %s, %s", res.Status, p.words())
	}
	again.DryRun = true
	if res := w.call("POST", "/v1/tasks", again, nil); res.StatusCode != 200 {
		t.Errorf("a dry run: %s", res.Status)
	}
}

// A retry needs what the task needed.
func TestRetryWithoutItsBlob(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{bring}})
	large := bytes.Repeat([]byte("x"), scripts.InlineMax+1)
	task := w.submit(api.Submit{Runbook: "bring", On: "fw001", Files: map[string][]byte{"image": large}})
	w.work("default", func(string) jobs.Result {
		return jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Failed, Class: jobs.ClassUser}
	})
	path := fmt.Sprintf("/v1/tasks/%s/retry", task.Task)
	if res := w.call("POST", path, map[string]any{}, nil); res.StatusCode != 201 {
		t.Errorf("retry: %s", res.Status)
	}
	w.call("DELETE", "/v1/blobs/"+sumOf(string(large))+"?force=true", nil, nil)
	var p problem
	if res := w.call("POST", path, map[string]any{"again": true}, &p); res.StatusCode != 404 ||
		!strings.Contains(p.words(), "the blob is not there") {
		t.Errorf("retry without the blob: %s, %s", res.Status, p.words())
	}
}

// damagedQueue has other contents than those that were put.
type damagedQueue struct{ *queuetest.Queue }

func damaged(q *queuetest.Queue) everything { return damagedQueue{q} }

func (damagedQueue) ReadBlob(_ context.Context, _ string, w io.Writer) error {
	_, err := io.WriteString(w, "hallo")
	return errors.Join(err, jobs.ErrBadBlob)
}
