package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
	"muster/testkit/clitest"
)

// roundTrip is a network without sockets, so that a bubble of synctest can hold it.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// said returns an answer with a status and a body.
func said(status int, text string) (*http.Response, error) {
	kind := "application/json"
	if status != http.StatusOK {
		kind = "application/problem+json"
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Body: io.NopCloser(strings.NewReader(text)),
		Header: http.Header{"Content-Type": {kind}}}, nil
}

// bubble returns a session in a bubble, whose server is a function. The server reports no pauses
// without the test's doing.
func bubble(t *testing.T, serve roundTrip) (s *cli.Session, words func() string) {
	t.Helper()
	c, err := cli.NewClient("http://127.0.0.1:1", "")
	if err != nil {
		t.Fatal(err)
	}
	c.HTTP.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/v1/pauses" {
			return said(200, "{}")
		}
		return serve(r)
	})
	s, _, buf := clitest.NewSession(c)
	return s, buf.String
}

func aTaskInfo() jobs.TaskInfo {
	return jobs.TaskInfo{Task: apitest.ATask, Total: 4, State: jobs.TaskRunning, Outcomes: jobs.NewCounts()}
}

// TestFollowAsksUntilTheEnd lets a job end every ten seconds, at a server that waits.
func TestFollowAsksUntilTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		s, words := bubble(t, func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.URL.RequestURI())
			time.Sleep(10 * time.Second)
			n := len(asked)
			state := jobs.TaskRunning
			if n == 4 {
				state = jobs.TaskEnded
			}
			return said(200, apitest.TaskJSON(state, fmt.Sprintf(`"succeeded": %d`, n)))
		})
		begun := time.Now()
		end, err := Follow(t.Context(), s, aTaskInfo())
		if err != nil || end.State != jobs.TaskEnded || ExitOf(end) != cli.ExitOK {
			t.Fatalf("follow: %+v, %v", end, err)
		}
		if d := time.Since(begun).Round(time.Second); d != 41*time.Second && d != 40*time.Second {
			t.Errorf("it took %s, the server 40 s", d)
		}
		var want []string
		for n, wait := range []int{4, 25, 25, 25} {
			want = append(want, fmt.Sprintf("/v1/tasks/%s?seen=%d&wait=%d", apitest.ATask, n, wait))
		}
		if diff := cmp.Diff(want, asked); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if n := strings.Count(words(), "\n"); n < 2 || n > 8 {
			t.Errorf("%d lines of progress:\n%s", n, words())
		}
	})
}

// TestFollowLeavesAHastyServerInPeace has a server that answers at once instead of waiting.
func TestFollowLeavesAHastyServerInPeace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, _ := bubble(t, func(*http.Request) (*http.Response, error) {
			asked++
			return said(200, apitest.TaskJSON(jobs.TaskRunning, `"failed": 1`))
		})
		if _, err := Follow(ctx, s, aTaskInfo()); err == nil {
			t.Error("a task that goes on has ended")
		}
		if asked > 60*int(time.Second/PaceMost)+10 {
			t.Errorf("%d questions in a minute", asked)
		}
	})
}

func TestFollowEndsAtOnceIfTheTaskDid(t *testing.T) {
	t.Parallel()
	s, _ := bubble(t, func(*http.Request) (*http.Response, error) { return nil, errors.New("asked") })
	task := aTaskInfo()
	task.State = jobs.TaskEnded
	if _, err := Follow(t.Context(), s, task); err != nil {
		t.Error(err)
	}
}

func TestFollowOutlivesAServerThatComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s, words := bubble(t, func(*http.Request) (*http.Response, error) {
			switch d := time.Since(begun); {
			case d < 30*time.Second:
				return nil, errors.New("connection refused")
			case d < 60*time.Second:
				return said(503, `{"detail": "redis is away"}`)
			case d < 90*time.Second:
				return said(200, "<html>")
			}
			return said(200, apitest.TaskJSON(jobs.TaskEnded, `"succeeded": 3, "failed": 1`))
		})
		end, err := Follow(t.Context(), s, aTaskInfo())
		if err != nil || ExitOf(end) != cli.ExitNotAll {
			t.Fatalf("follow: %+v, %v", end, err)
		}
		apitest.WantParts(t, "the progress", words(), "does not answer")
	})
}

func TestFollowGivesUpOnAServerThatStaysAway(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]roundTrip{
		"silent": func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		},
		"refused": func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") },
		"no Redis": func(*http.Request) (*http.Response, error) {
			return said(503, `{"detail": "redis is away"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				s, _ := bubble(t, serve)
				_, err := Follow(t.Context(), s, aTaskInfo())
				var e *cli.ExitError
				if !errors.As(err, &e) || e.Code != cli.ExitUnreachable {
					t.Fatalf("error %v, want one of exit 3", err)
				}
				apitest.WantParts(t, "the error", err.Error(), "runs on", "muster task "+apitest.ATask+" --wait",
					"muster cancel "+apitest.ATask)
				if d := time.Since(begun); d < time.Minute || d > 5*time.Minute {
					t.Errorf("it gave up after %s", d)
				}
			})
		})
	}
}

func TestFollowEndsWhenTheTaskIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := bubble(t, func(*http.Request) (*http.Response, error) {
			return said(404, `{"detail": "task is not known"}`)
		})
		_, err := Follow(t.Context(), s, aTaskInfo())
		if err == nil || cli.CodeOf(err) != cli.ExitNotAll || !strings.Contains(err.Error(), "not known") {
			t.Errorf("error %v, want the server's", err)
		}
	})
}

func TestFollowInterruptedSaysThatTheTaskRunsOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s, words := bubble(t, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		s.ErrTerm = true
		time.AfterFunc(3*time.Second, cancel)
		_, err := Follow(ctx, s, aTaskInfo())
		var e *cli.ExitError
		if !errors.As(err, &e) || e.Code != cli.ExitInterrupted {
			t.Fatalf("error %v, want one of exit 130", err)
		}
		apitest.WantParts(t, "the error", err.Error(), "runs on", "muster task "+apitest.ATask+" --wait")
		if n := strings.Count(words(), EraseLine); n < 10 || n > 16 {
			t.Errorf("the bar was drawn %d times in 3 s", n)
		}
	})
}

// TestFollowSaysWhyNothingStarts halts everything after a while and lifts the halt again.
func TestFollowSaysWhyNothingStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s, words := bubble(t, nil)
		asked := 0
		s.HTTP.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
			passed := time.Since(begun)
			switch {
			case r.URL.Path == "/v1/pauses" && passed < time.Minute:
				asked++
				return said(200, `{"halted": "halted by bob: fire", "zones": {"z2": "paused by al\u001bice"}}`)
			case r.URL.Path == "/v1/pauses":
				return said(200, `{}`)
			case passed < 2*time.Minute:
				time.Sleep(25 * time.Second)
				return said(200, apitest.TaskJSON(jobs.TaskQueued, ""))
			}
			return said(200, apitest.TaskJSON(jobs.TaskEnded, `"succeeded": 4`))
		})
		task := aTaskInfo()
		task.State = jobs.TaskQueued
		if _, err := Follow(t.Context(), s, task); err != nil {
			t.Fatal(err)
		}
		apitest.WantParts(t, "the progress", words(),
			`waits: everything is halted by bob: fire; zone z2 is paused by al\x1bice`)
		if asked < 2 || asked > 4 {
			t.Errorf("asked %d times in a minute", asked)
		}
		last := strings.Split(strings.TrimSpace(words()), "\n")
		if strings.Contains(last[len(last)-1], "halted") {
			t.Errorf("it says that it waits to the end:\n%s", words())
		}
	})
}

// Only a person clears a frozen group: a caller that waits for a job behind it learns that after
// nothing has happened for a while.
func TestFollowSaysWhatOthersHave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun, asked := time.Now(), 0
		s, words := bubble(t, func(r *http.Request) (*http.Response, error) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/waits"):
				asked++
				return said(200, `{"waits": [{"why": "group g\u001b is frozen", "hosts": "fw[1-4]", "count": 4}]}`)
			case time.Since(begun) < time.Minute:
				time.Sleep(10 * time.Second)
				return said(200, apitest.TaskJSON(jobs.TaskQueued, ""))
			}
			return said(200, apitest.TaskJSON(jobs.TaskEnded, `"succeeded": 4`))
		})
		task := aTaskInfo()
		task.State = jobs.TaskQueued
		if _, err := Follow(t.Context(), s, task); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(words(), `waits: fw[1-4]: group g\x1b is frozen`); n != 1 || asked < 2 || asked > 4 {
			t.Errorf("said %d times after %d questions:\n%s", n, asked, words())
		}
	})
}

func TestExitCodeOfATask(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		total  int
		counts jobs.Counts
		note   string
		want   int
	}{
		{"all succeeded", 2, jobs.Counts{jobs.Succeeded: 2}, "", cli.ExitOK},
		{"cancelled too late", 2, jobs.Counts{jobs.Succeeded: 2}, "cancelled by bob", cli.ExitOK},
		{"one failed", 2, jobs.Counts{jobs.Succeeded: 1, jobs.Failed: 1}, "", cli.ExitNotAll},
		{"one unknown", 2, jobs.Counts{jobs.Succeeded: 1, jobs.Unknown: 1}, "", cli.ExitNotAll},
		{"one expired", 1, jobs.Counts{jobs.Expired: 1}, "", cli.ExitNotAll},
		{"counts that do not add up", 2, jobs.Counts{jobs.Succeeded: 1}, "", cli.ExitNotAll},
		{"cancelled", 2, jobs.Counts{jobs.Succeeded: 1, jobs.Cancelled: 1}, "", cli.ExitStopped},
		{"cancelled while the last one ran", 2, jobs.Counts{jobs.Succeeded: 1, jobs.Failed: 1}, "by bob", cli.ExitStopped},
		{"skipped by a rule", 2, jobs.Counts{jobs.Failed: 1, jobs.Skipped: 1}, "", cli.ExitStopped},
		{"superseded", 1, jobs.Counts{jobs.Superseded: 1}, "", cli.ExitStopped},
	} {
		got := ExitOf(jobs.TaskInfo{Total: c.total, Outcomes: c.counts, State: jobs.TaskEnded,
			Orders: jobs.Orders{Cancelled: c.note}})
		if got != c.want {
			t.Errorf("%s: exit %d, want %d", c.name, got, c.want)
		}
	}
}
