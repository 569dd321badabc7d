-- +goose Up
-- One text for SQLite and PostgreSQL. Instants are µs since 1970, UTC; 0 is not set.

create table streams (
  zone     text not null primary key,
  position text not null,   -- the last entry that was read
  entries  bigint not null, -- of the stream up to there, counted by Redis; -1: not known
  events   bigint not null, -- that were stored
  at       bigint not null  -- when
);

create table gaps (
  zone    text not null,
  after   text not null,    -- the last entry that was read before
  first   text not null,    -- the first one that was still there; empty: none
  entries bigint not null,  -- that are missing; -1: not known
  at      bigint not null,  -- when it was noticed
  note    text not null
);

create table tasks (
  id        text not null primary key,
  runbook   text not null,
  operator  text not null,
  target    text not null,  -- the selector
  zones     text not null,
  inventory text not null,
  schedule  text not null,
  tick      bigint not null,
  priority  text not null,
  retry_of  text not null,
  cancelled text not null,
  state     text not null,
  total     bigint not null,
  submitted bigint not null,
  started   bigint not null,
  finished  bigint not null
);
create index tasks_submitted on tasks (submitted);

create table jobs (
  task     text not null,
  host     text not null,
  zone     text not null,
  customer text not null,
  model    text not null,
  runbook  text not null,
  operator text not null,
  outcome  text not null,
  class    text not null,
  exit     bigint,
  error    text not null,
  note     text not null,
  node     text not null,
  attempt  bigint not null,
  tries    bigint not null,
  due      bigint not null,
  started  bigint not null,
  finished bigint not null,
  primary key (task, host)
);
-- In the whole order of a page, or SQLite sorts all of them for the first one.
create index jobs_finished on jobs (finished, task, host);
create index jobs_customer on jobs (customer, finished);
create index jobs_host on jobs (host, finished);
create index jobs_runbook on jobs (runbook, finished);
create index jobs_operator on jobs (operator, finished);
-- Nearly all succeed, and those are found by time. These cost next to nothing.
create index jobs_bad on jobs (outcome, finished) where outcome <> 'succeeded';
create index jobs_bad_customer on jobs (customer, outcome, finished) where outcome <> 'succeeded';
create index jobs_bad_host on jobs (host, outcome, finished) where outcome <> 'succeeded';
create index jobs_bad_runbook on jobs (runbook, outcome, finished) where outcome <> 'succeeded';
create index jobs_bad_operator on jobs (operator, outcome, finished) where outcome <> 'succeeded';

create table attempts (
  task    text not null,
  host    text not null,
  attempt bigint not null,
  node    text not null,
  started bigint not null,
  ended   bigint not null,
  how     text not null,
  primary key (task, host, attempt)
);

create table steps (
  task text not null,
  host text not null,
  step bigint not null,
  at   bigint not null
);
create index steps_job on steps (task, host);

create table events (
  zone   text not null,
  entry  text not null,
  at     bigint not null,
  event  text not null,
  object text not null,
  task   text not null,
  detail text not null
);
create index events_task on events (task, at);

create table output (
  task  text not null,
  host  text not null,
  size  bigint not null,  -- bytes that the host said
  kept  bigint not null,  -- of them, before they were compressed
  data  bytea not null,
  primary key (task, host)
);

create table estimates (
  runbook  text not null,
  model    text not null,
  customer text not null,
  recent   text not null, -- ns of the last successes, newest first
  primary key (runbook, model, customer)
);

create table plans (
  id      text not null primary key,
  task    text not null,
  at      bigint not null,
  runbook text not null,
  target  text not null,
  body    text not null
);
create index plans_task on plans (task);

-- +goose Down
drop table plans;
drop table estimates;
drop table output;
drop table events;
drop table steps;
drop table attempts;
drop table jobs;
drop table tasks;
drop table gaps;
drop table streams;
