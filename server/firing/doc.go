// Package firing does what triggers say about events: it follows the triggers in force, submits
// their tasks on the way of a person's run, and remembers each firing with its event.
//
// A trigger is a standing order. Its principal is trigger:NAME, to which the file of access grants
// what it may do; servers sign its tasks, and nodes check them as all others. The id of a task
// comes from the event and the trigger, so an event that is worked on twice makes one task.
//
// Floor 6: may import jobs/queue/firings, server/stock, server/rights, server/duties, server/web
// and what is below.
package firing
