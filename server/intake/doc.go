// Package intake makes tasks of requests. A submit and a retry are lists of stages, which stand in
// Intake.Submit and Retries.Retry in their order; each stage adds something to the draft of the
// task, answers the request, or refuses it. An Entry puts the draft into the queue at last.
//
// Duties begin tasks as well: Tick drafts the task of a schedule, Fix drafts a task whose runbook
// was frozen before, and Entry.PutOnce submits both.
//
// Floor 7: may import server/draft, server/stock, server/fault and what is below.
package intake
