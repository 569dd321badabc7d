package history

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"muster/api"
	"muster/jobs"
)

// ranText returns the stored form of Ran.
func ranText(r *jobs.Ran) string {
	if r == nil {
		return ""
	}
	text, _ := json.Marshal(r) // only texts and numbers: no error is possible
	return string(text)
}

func readRan(text string) (*jobs.Ran, error) {
	if text == "" {
		return nil, nil
	}
	var r jobs.Ran
	err := json.Unmarshal([]byte(text), &r)
	return &r, err
}

// provenNumber returns the stored form of whether a token proved who ordered a task.
func provenNumber(t jobs.TaskInfo) int64 {
	switch {
	case t.Proven:
		return 1
	case t.Ran == nil:
		return -1 // not known
	}
	return 0
}

// addAsked adds the requests of their tasks to jobs: it reads each task once.
func (s *Store) addAsked(ctx context.Context, list []api.PastJob) error {
	at := map[jobs.TaskID][]int{}
	var marks []string
	var args []any
	for i, j := range list {
		id := j.ID.Task()
		if at[id] == nil {
			args = append(args, string(id))
			marks = append(marks, fmt.Sprintf("$%d", len(args)))
		}
		at[id] = append(at[id], i)
	}
	if len(args) == 0 {
		return nil
	}
	return s.rows(ctx, "what was asked for", "select id, target, proven, reason, ran from tasks "+
		"where id in ("+strings.Join(marks, ", ")+")", args, func(scan func(...any) error) error {
		var id, ran string
		var proven int64
		var a api.Asked
		err := scan(&id, &a.On, &proven, &a.Reason, &ran)
		if err == nil {
			a.Ran, err = readRan(ran)
		}
		a.Proven = proven == 1
		for _, i := range at[jobs.TaskID(id)] {
			list[i].Asked = &a
		}
		return err
	})
}
