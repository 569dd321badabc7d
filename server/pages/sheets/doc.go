// Package sheets gives lists as files for spreadsheets and programs: jobs that have ended, hosts,
// the report of a task. A file is read and written page by page, in the name of whoever asks, and
// its address has the filters of the page from which it comes.
//
// Floor 6: may import server/pages/frame, fleet/remote and what is below them.
package sheets

import "muster/server/pages/frame"

// Content returns the addresses of the files.
func Content() frame.Content {
	c := frame.Content{Answers: map[string]frame.Answer{}}
	for path, open := range map[string]source{"/history/jobs": pastJobs, "/fleet/hosts": hosts,
		"/tasks/{task}/report": report} {
		c.Answers["GET "+path+".csv"] = answer(open, csvForm)
		c.Answers["GET "+path+".json"] = answer(open, jsonForm)
	}
	return c
}
