-- +goose Up
-- Who ordered a task, whether a token proved it (1, 0; -1: not kept), why, and what ran: the
-- runbook's version and hash and the arguments, as JSON; empty: not kept.
alter table tasks add column proven bigint not null default -1;
alter table tasks add column reason text not null default '';
alter table tasks add column ran text not null default '';

-- +goose Down
alter table tasks drop column proven;
alter table tasks drop column reason;
alter table tasks drop column ran;
