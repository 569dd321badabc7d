-- +goose Up
-- Estimates are of what ran: the runbook and its arguments. Those that were of the runbook alone
-- told nothing of exec, and are not kept.
drop table estimates;
create table estimates (
  work     text not null, -- a hash of the runbook and its arguments
  model    text not null,
  customer text not null,
  recent   text not null,   -- ns of the last successes, newest first
  at       bigint not null, -- when it changed last
  primary key (work, model, customer)
);
create index estimates_at on estimates (at);

-- +goose Down
drop table estimates;
create table estimates (
  runbook  text not null,
  model    text not null,
  customer text not null,
  recent   text not null,
  primary key (runbook, model, customer)
);
