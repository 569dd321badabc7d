package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/jobs"
	"muster/server"
)

// newestWord stands for the newest task of who asks, wherever a command takes a task:
// never for another's, or cancel would end a stranger's work.
const newestWord = "last"

// namesTask is the form of a command that takes tasks or jobs.
var namesTask = regexp.MustCompile(`\b(TASK|JOB)\b`)

// takeLast puts the id of the last task in the place of the word, in arguments and in the
// flag --task, and says which one it is.
func (s *session) takeLast(ctx context.Context, c *cobra.Command, args []string) ([]string, error) {
	flag := c.Flags().Lookup("task")
	inFlag := flag != nil && flag.Value.String() == newestWord
	isLast := func(text string) bool {
		return text == newestWord || strings.HasPrefix(text, newestWord+":")
	}
	if !inFlag && (!namesTask.MatchString(c.Use) || !slices.ContainsFunc(args, isLast)) {
		return args, nil
	}
	t, err := s.lastTask(ctx)
	if err != nil {
		return nil, err
	}
	s.say("last is task %s: %s on %s", cell(string(t.Task)), cell(t.Runbook), cell(t.On))
	if inFlag {
		return args, flag.Value.Set(string(t.Task))
	}
	args = slices.Clone(args)
	for i, text := range args {
		if isLast(text) {
			args[i] = string(t.Task) + strings.TrimPrefix(text, newestWord)
		}
	}
	return args, nil
}

// lastTask is the newest task of who asks.
func (c *client) lastTask(ctx context.Context) (jobs.TaskInfo, error) {
	var l server.TaskList
	err := c.get(ctx, "/v1/tasks", url.Values{"limit": {"1"}, "mine": {"true"}}, &l)
	switch {
	case err != nil:
		return jobs.TaskInfo{}, err
	case len(l.Tasks) == 0:
		err = errors.New("you have no task that is kept: `muster tasks` lists those of all operators")
		return jobs.TaskInfo{}, exit(exitNotAll, err)
	}
	return l.Tasks[0], nil
}

// oneOf takes a value that may stand as an argument, or behind its flag.
func oneOf(flag *string, args []string) error {
	switch {
	case len(args) == 0:
	case *flag != "" && *flag != args[0]:
		return fmt.Errorf("two tasks are named, %s and %s: give one", quoted(args[0]), quoted(*flag))
	case args[0] == "":
		return errors.New("the id of the task is empty, as of a variable that is not set: want a value")
	default:
		*flag = args[0]
	}
	return nil
}
