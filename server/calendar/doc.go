// Package calendar keeps the timetable: the windows, freezes and approvals that say when work may
// begin. It answers questions about it over HTTP and carries out the orders that change it.
//
// Floor 6: may import server/stock, server/web, server/fault, access, jobs/queue for its errors,
// and what is below.
package calendar
