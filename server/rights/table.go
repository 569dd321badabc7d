package rights

import "muster/access"

// A need says which right a route asks for.
type need struct {
	verb  access.Verb
	where where
}

// where says on what a caller must have a right.
type where int

const (
	anybody  where = iota // who was let in; the route itself says what it shows to whom
	member                // somebody who has any right at all
	house                 // the whole house
	anywhere              // some runbook on some host: the route looks at which ones by itself
	task                  // {task}: all its hosts, for its runbook
	job                   // {job}: its host, for the runbook of its task
	host                  // {host}
	customer              // {customer}: all its hosts
	runbook               // {runbook}: seen
)

// needs has a row for each route. TestEveryRouteNeedsARight walks the OpenAPI document and fails
// for a route without one.
var needs = map[string]need{
	"GET /v1/health":           {"", anybody},
	"GET /v1/whoami":           {"", anybody},
	"GET /metrics":             {access.See, house},
	"GET /v1/tokens":           {"", member},
	"POST /v1/tokens":          {"", member},
	"DELETE /v1/tokens/{name}": {"", member},
	"POST /v1/login/links":     {"", member},
	"POST /v1/logout":          {"", anybody},
	"GET /v1/sessions":         {"", member},

	"DELETE /v1/sessions/{session}": {"", member},

	"GET /v1/tasks":                       {access.See, anywhere},
	"POST /v1/tasks":                      {access.Run, anywhere},
	"GET /v1/tasks/{task}":                {access.See, task},
	"GET /v1/tasks/{task}/jobs":           {access.See, task},
	"GET /v1/tasks/{task}/waits":          {access.See, task},
	"GET /v1/tasks/{task}/summary":        {access.See, task},
	"GET /v1/tasks/{task}/summaries":      {access.See, task},
	"GET /v1/tasks/{task}/output":         {access.See, task},
	"GET /v1/tasks/{task}/report":         {access.See, task},
	"POST /v1/tasks/{task}/cancel":        {access.Order, task},
	"POST /v1/tasks/{task}/pause":         {access.Order, task},
	"POST /v1/tasks/{task}/resume":        {access.Order, task},
	"POST /v1/tasks/{task}/retry":         {access.Run, task},
	"POST /v1/tasks/{task}/facts":         {access.Order, task},
	"POST /v1/tasks/{task}/rollout/stop":  {access.Order, task},
	"POST /v1/tasks/{task}/rollout/next":  {access.Order, task},
	"POST /v1/tasks/{task}/gates/open":    {access.Order, task},
	"POST /v1/tasks/{task}/gates/refuse":  {access.Order, task},
	"POST /v1/tasks/{task}/lane/continue": {access.Order, task},
	"GET /v1/lanes":                       {access.See, anywhere},
	"GET /v1/dnssec":                      {access.See, anywhere},
	"GET /v1/approvals":                   {access.See, anywhere},
	"GET /v1/approvals/{task}":            {access.See, task},
	"POST /v1/approvals/{task}":           {access.See, task}, // the own one: run; others: approve
	"DELETE /v1/approvals/{task}":         {access.See, task}, // others than its operator: approve
	// the own signature, or the own task
	"DELETE /v1/approvals/{task}/signature": {access.See, task},

	"GET /v1/reviews":           {access.See, house},
	"POST /v1/reviews/{task}":   {access.Approve, house},
	"GET /v1/jobs/{job}":        {access.See, job},
	"GET /v1/jobs/{job}/output": {access.See, job},
	"GET /v1/jobs/{job}/course": {access.See, job},
	"POST /v1/jobs/{job}/ask":   {access.Order, job},
	"POST /v1/plan":             {access.Plan, anywhere},
	"GET /v1/plan/openings":     {access.Plan, anywhere},
	"GET /v1/plan/calibration":  {access.See, house},

	"GET /v1/hosts":                 {access.See, anywhere},
	"POST /v1/hosts/query":          {access.See, anywhere},
	"GET /v1/hosts/{host}":          {access.See, host},
	"GET /v1/hosts/{host}/next":     {access.See, host},
	"GET /v1/hosts/{host}/windows":  {access.See, host},
	"POST /v1/hosts/drain":          {access.Order, anywhere},
	"POST /v1/hosts/undrain":        {access.Order, anywhere},
	"POST /v1/hosts/quarantine":     {access.Order, anywhere},
	"POST /v1/hosts/unquarantine":   {access.Order, anywhere},
	"GET /v1/quarantine":            {access.See, anywhere},
	"POST /v1/hosts/{host}/release": {access.Order, host},
	"POST /v1/hosts/{host}/clear":   {access.Order, host},
	"GET /v1/inventory":             {access.See, house},
	"GET /v1/facts":                 {access.See, anywhere},
	"GET /v1/groups":                {access.See, anywhere},
	"POST /v1/groups/{group}/clear": {access.Order, anywhere},
	"GET /v1/limits":                {access.See, anywhere},

	"GET /v1/runbooks":           {access.See, anywhere},
	"GET /v1/runbooks/{runbook}": {access.See, runbook},
	"GET /v1/blobs":              {access.See, house},
	"GET /v1/blobs/{sum}":        {access.See, house},
	"PUT /v1/blobs/{sum}":        {access.Run, anywhere},
	"DELETE /v1/blobs/{sum}":     {access.Author, house},

	"GET /v1/queue":                        {access.See, anywhere},
	"GET /v1/queue/depth":                  {access.See, anywhere},
	"GET /v1/nodes":                        {access.See, house},
	"GET /v1/upgrade":                      {access.See, house},
	"POST /v1/nodes/{node}/pause":          {access.Order, house},
	"POST /v1/nodes/{node}/resume":         {access.Order, house},
	"GET /v1/events":                       {access.See, anywhere},
	"GET /v1/pauses":                       {access.See, anywhere},
	"GET /v1/rollouts":                     {access.See, anywhere},
	"GET /v1/gates":                        {access.See, anywhere},
	"POST /v1/customers/{customer}/pause":  {access.Order, customer},
	"POST /v1/customers/{customer}/resume": {access.Order, customer},
	"POST /v1/zones/{zone}/pause":          {access.Order, house},
	"POST /v1/zones/{zone}/resume":         {access.Order, house},
	"POST /v1/zones/{zone}/thaw":           {access.Order, house},
	"POST /v1/zones/{zone}/fsck":           {access.Admin, house},
	"POST /v1/halt":                        {access.Order, house},
	"POST /v1/lift":                        {access.Order, house},

	"GET /v1/chains":               {access.See, anywhere},
	"GET /v1/chains/{chain}":       {access.See, anywhere},
	"POST /v1/chains/{chain}/next": {access.Order, anywhere},
	"POST /v1/chains/{chain}/undo": {access.Order, anywhere},

	"GET /v1/windows":                        {access.See, anywhere},
	"PUT /v1/windows":                        {access.Admin, house},
	"POST /v1/windows/adopt":                 {access.Admin, house},
	"GET /v1/windows/{window}/next":          {access.See, anywhere},
	"GET /v1/calendar":                       {access.See, anywhere},
	"POST /v1/windows/propose":               {access.Order, anywhere},   // all hosts of the customer
	"POST /v1/windows/{window}/approve":      {access.Approve, anywhere}, // those of the customer
	"POST /v1/approvals/{approval}/withdraw": {access.Approve, anywhere},
	"POST /v1/freezes":                       {access.Order, house},
	"POST /v1/freezes/{freeze}/lift":         {access.Order, house},

	"POST /v1/apply":          {"", member}, // each entry asks for a right of its own
	"GET /v1/applies":         {access.See, house},
	"GET /v1/applies/{apply}": {access.See, house},
	"GET /v1/entries":         {access.See, anywhere},

	"GET /v1/schedules":                    {access.See, anywhere},
	"POST /v1/schedules":                   {access.Run, house},
	"GET /v1/schedules/{schedule}":         {access.See, anywhere},
	"GET /v1/schedules/{schedule}/next":    {access.See, anywhere},
	"POST /v1/schedules/{schedule}/run":    {access.Run, anywhere},
	"POST /v1/schedules/{schedule}/pause":  {access.Order, anywhere},
	"POST /v1/schedules/{schedule}/resume": {access.Order, anywhere},
	"POST /v1/schedules/{schedule}/remove": {access.Order, anywhere},

	"GET /v1/triggers":           {access.See, house},
	"GET /v1/triggers/{trigger}": {access.See, house},
	"POST /v1/triggers/test":     {access.See, house},

	"GET /v1/repositories":                    {access.See, house},
	"POST /v1/repositories/{repository}/poll": {access.Admin, house},
	"GET /v1/firings":                         {access.See, anywhere},

	"GET /v1/history":         {access.See, anywhere},
	"GET /v1/history/state":   {access.See, house},
	"GET /v1/history/export":  {access.See, anywhere},
	"GET /v1/history/events":  {access.See, anywhere},
	"GET /v1/agreed":          {access.See, house},
	"POST /v1/agreed/restore": {access.Admin, house},
	"POST /v1/agreed/forsake": {access.Admin, house},

	"GET /v1/inbox":                 {access.See, anywhere},
	"GET /v1/inbox/{event}":         {access.See, anywhere},
	"POST /v1/inbox":                {access.Order, anywhere}, // all hosts of the customer
	"GET /v1/inbox/{event}/replay":  {access.See, anywhere},
	"POST /v1/inbox/{event}/replay": {access.Order, anywhere}, // likewise
	"GET /v1/ingress":               {access.See, house},

	"GET /v1/notify/messages":                   {access.See, anywhere},
	"GET /v1/notify/messages/{message}":         {access.See, anywhere},
	"GET /v1/notify/receivers":                  {access.See, house},
	"POST /v1/notify/receivers/{receiver}/test": {access.Admin, house},

	"GET /v1/audit":                     {access.Audit, house},
	"GET /v1/audit/state":               {access.Audit, house},
	"GET /v1/audit/export":              {access.Audit, house},
	"GET /v1/audit/growth":              {access.Audit, house},
	"GET /v1/audit/entries/{seq}":       {access.Audit, house},
	"GET /v1/audit/entries/{seq}/proof": {access.Audit, house},
	"POST /v1/audit/erase":              {access.Admin, house},
}

// Known reports whether a route has its row.
func Known(method, path string) bool {
	_, known := needs[method+" "+path]
	return known
}

// needOf returns the need of a route. One without a row needs everything.
func needOf(method, path string) need {
	if n, known := needs[method+" "+path]; known {
		return n
	}
	return need{access.Admin, house}
}
