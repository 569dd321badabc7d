package apitest

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Part answers with a part of the output of a job.
func Part(text string, next int, ended bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Muster-Next", fmt.Sprint(next))
		w.Header().Set("Muster-Ended", fmt.Sprint(ended))
		io.WriteString(w, text)
	}
}

func saidEvent(id, host string, at int, text string) string {
	return fmt.Sprintf("id: %s\nevent: said\ndata: {\"job\": \"%s:%s\", \"host\": %q, \"at\": %d, \"data\": %q}\n\n",
		id, ATask, host, host, at, base64.StdEncoding.EncodeToString([]byte(text)))
}

func endedEvent(host, outcome, more string) string {
	return fmt.Sprintf("event: ended\ndata: {\"job\": \"%s:%s\", \"host\": %q, \"outcome\": %q%s}\n\n", ATask, host, host,
		outcome, more)
}

// OverEvent is the last event of a stream.
const OverEvent = "event: over\ndata: {\"state\": \"ended\"}\n\n"

// StreamOf answers with a stream of events.
func StreamOf(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, strings.Join(parts, ""))
	}
}

// TailRoutes answers with two streams: the first one breaks off, the second one repeats some
// of it.
func TailRoutes() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"GET /v1/tasks/" + ATask + "/output": InTurn(
		StreamOf(": muster\n\n", saidEvent("z=1-0", "fw1", 0, "hello\nhal"),
			saidEvent("z=1-0", "fw2", 0, "\x1b[2Jtwo\r\n"),
			endedEvent("fw2", "failed", `, "exit_code": 7, "error": "exit 7"`)),
		StreamOf(": trouble: Redis sleeps\n\n", saidEvent("z=2-0", "fw2", 0, "\x1b[2Jtwo\r\n"),
			endedEvent("fw2", "failed", ""), saidEvent("z=2-0", "fw1", 6, "half\nrest"),
			saidEvent("z=2-0", "fw1", 2015, "tail\nopen"),
			endedEvent("fw1", "succeeded", ""), OverEvent))}
}
