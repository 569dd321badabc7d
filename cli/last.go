package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/jobs"
)

// NewestWord stands for the caller's newest task, wherever a command takes a task. It never means
// the task of another person, or cancel could end a stranger's work.
const NewestWord = "last"

// namesTask is the form of a command that takes tasks or jobs.
var namesTask = regexp.MustCompile(`\b(TASK|JOB)\b`)

// takeLast replaces the word by the id of the last task, in arguments, selectors and the flag
// --task, and prints that id.
func (s *Session) takeLast(ctx context.Context, c *cobra.Command, args []string) ([]string, error) {
	args, err := selectors(c, args, func(text string) (string, error) {
		if !lastHosts.MatchString(text) {
			return text, nil
		}
		id, err := s.sayLast(ctx)
		return lastHosts.ReplaceAllString(text, "${1}task:"+id+"${2}"), err
	})
	if err != nil {
		return nil, err
	}
	flag := c.Flags().Lookup("task")
	inFlag := flag != nil && flag.Value.String() == NewestWord
	isLast := func(text string) bool {
		return text == NewestWord || strings.HasPrefix(text, NewestWord+":")
	}
	if !inFlag && (!namesTask.MatchString(c.Use) || !slices.ContainsFunc(args, isLast)) {
		return args, nil
	}
	id, err := s.sayLast(ctx)
	if err != nil {
		return nil, err
	}
	if inFlag {
		return args, flag.Value.Set(id)
	}
	args = slices.Clone(args)
	for i, text := range args {
		if isLast(text) {
			args[i] = id + strings.TrimPrefix(text, NewestWord)
		}
	}
	return args, nil
}

// sayLast returns the id of the caller's newest task, and prints which task that is.
func (s *Session) sayLast(ctx context.Context) (string, error) {
	t, err := s.lastTask(ctx)
	if err != nil {
		return "", err
	}
	s.Say("last is task %s: %s on %s", Cell(string(t.Task)), Cell(t.Runbook), Cell(t.On))
	return string(t.Task), nil
}

// lastTask returns the caller's newest task.
func (c *Client) lastTask(ctx context.Context) (jobs.TaskInfo, error) {
	var l api.TaskList
	err := c.Get(ctx, "/v1/tasks", url.Values{"limit": {"1"}, "mine": {"true"}}, &l)
	switch {
	case err != nil:
		return jobs.TaskInfo{}, err
	case len(l.Tasks) == 0:
		err = errors.New("you have no task that is kept: `muster tasks` lists those of all operators")
		return jobs.TaskInfo{}, Exit(ExitNotAll, err)
	}
	return l.Tasks[0], nil
}

// OneOf takes a value that may stand as an argument, or behind its flag.
func OneOf(flag *string, args []string) error {
	switch {
	case len(args) == 0:
	case *flag != "" && *flag != args[0]:
		return fmt.Errorf("two tasks are named, %s and %s: give one", Quoted(args[0]), Quoted(*flag))
	case args[0] == "":
		return errors.New("the id of the task is empty, as of a variable that is not set: want a value")
	default:
		*flag = args[0]
	}
	return nil
}
