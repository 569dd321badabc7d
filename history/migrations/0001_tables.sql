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
  finished  bigint not null,
  -- Who ordered it, whether a token proved it (1, 0; -1: not kept), why, and what ran: the
  -- runbook's version and hash and the arguments, as JSON; empty: not kept.
  proven    bigint not null default -1,
  reason    text not null default '',
  ran       text not null default ''
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
  -- What the time of a job went to: seconds by use, as JSON; empty: not known.
  times    text not null default '',
  primary key (task, host)
);
-- A page is found by one index that has what is asked for in front and then the whole order
-- of a page: so that nothing is sorted, nothing is read in vain, and PostgreSQL, which
-- guesses how many jobs two conditions leave, has no plan that looks cheaper. Two conditions
-- of which each holds for very many jobs have an index of their own; a third, and the
-- outcome, stand behind.
create index jobs_customer on jobs (customer, finished, task, host, outcome);
create index jobs_host on jobs (host, finished, task, runbook, operator, outcome);
create index jobs_operator on jobs (operator, finished, task, host, outcome);
create index jobs_runbook on jobs (runbook, finished, task, host, outcome);
create index jobs_customer_operator on jobs (customer, operator, finished, task, host, runbook, outcome);
create index jobs_customer_runbook on jobs (customer, runbook, finished, task, host, outcome);
create index jobs_operator_runbook on jobs (operator, runbook, finished, task, host, outcome);
-- Only for a request that names nothing but a time, and says so: by it PostgreSQL would look
-- for what was seldom, or long ago, among all jobs since.
create index jobs_finished on jobs (finished, task, host) where attempt >= 0;
-- Nearly all jobs succeed, and those are found by time. These cost next to nothing.
create index jobs_bad on jobs (outcome, finished, task, host) where outcome <> 'succeeded';
create index jobs_bad_customer on jobs (customer, outcome, finished, task, host, operator, runbook) where outcome <> 'succeeded';
create index jobs_bad_host on jobs (host, outcome, finished, task) where outcome <> 'succeeded';
create index jobs_bad_operator on jobs (operator, outcome, finished, task, host, runbook) where outcome <> 'succeeded';
create index jobs_bad_runbook on jobs (runbook, outcome, finished, task, host) where outcome <> 'succeeded';

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

-- How long a work took lately. It is kept by what ran and not by the name of its runbook, which
-- would say nothing of exec.
create table estimates (
  work     text not null, -- a hash of the runbook and its arguments
  model    text not null,
  customer text not null,
  recent   text not null,   -- ns of the last successes, newest first
  at       bigint not null, -- when it changed last
  primary key (work, model, customer)
);
create index estimates_at on estimates (at);

create table plans (
  id      text not null primary key,
  task    text not null,
  at      bigint not null,
  runbook text not null,
  target  text not null,
  body    text not null
);
create index plans_task on plans (task);

-- What people have agreed, as Redis had it last: for a Redis that has lost it.
create table agreed (
  part   text not null primary key,
  mark   bigint not null, -- grows with each change
  fields text not null,   -- JSON: those of the key in the hub
  at     bigint not null  -- when it was kept
);
