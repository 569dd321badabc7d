-- +goose Up
-- A page is found by one index that has what is asked for in front and then the whole order
-- of a page: so that nothing is sorted, nothing is read in vain, and PostgreSQL, which
-- guesses how many jobs two conditions leave, has no plan that looks cheaper. Two conditions
-- of which each holds for very many jobs have an index of their own; a third, and the
-- outcome, stand behind.
drop index jobs_finished;
drop index jobs_customer;
drop index jobs_host;
drop index jobs_operator;
drop index jobs_runbook;
drop index jobs_bad;
drop index jobs_bad_customer;
drop index jobs_bad_host;
drop index jobs_bad_runbook;
drop index jobs_bad_operator;
-- Only for who asks for no more than a time, and says so: by it PostgreSQL would look for
-- what was seldom, or long ago, among all jobs since.
create index jobs_finished on jobs (finished, task, host) where attempt >= 0;
create index jobs_customer on jobs (customer, finished, task, host, outcome);
create index jobs_host on jobs (host, finished, task, runbook, operator, outcome);
create index jobs_operator on jobs (operator, finished, task, host, outcome);
create index jobs_runbook on jobs (runbook, finished, task, host, outcome);
create index jobs_customer_operator on jobs (customer, operator, finished, task, host, runbook, outcome);
create index jobs_customer_runbook on jobs (customer, runbook, finished, task, host, outcome);
create index jobs_operator_runbook on jobs (operator, runbook, finished, task, host, outcome);
create index jobs_bad on jobs (outcome, finished, task, host) where outcome <> 'succeeded';
create index jobs_bad_customer on jobs (customer, outcome, finished, task, host, operator, runbook) where outcome <> 'succeeded';
create index jobs_bad_host on jobs (host, outcome, finished, task) where outcome <> 'succeeded';
create index jobs_bad_operator on jobs (operator, outcome, finished, task, host, runbook) where outcome <> 'succeeded';
create index jobs_bad_runbook on jobs (runbook, outcome, finished, task, host) where outcome <> 'succeeded';

-- +goose Down
drop index jobs_finished;
drop index jobs_customer;
drop index jobs_host;
drop index jobs_operator;
drop index jobs_runbook;
drop index jobs_customer_operator;
drop index jobs_customer_runbook;
drop index jobs_operator_runbook;
drop index jobs_bad;
drop index jobs_bad_customer;
drop index jobs_bad_host;
drop index jobs_bad_operator;
drop index jobs_bad_runbook;
create index jobs_finished on jobs (finished, task, host);
create index jobs_customer on jobs (customer, finished, runbook, operator, outcome);
create index jobs_host on jobs (host, finished, runbook, operator, outcome);
create index jobs_operator on jobs (operator, finished, runbook, outcome);
create index jobs_runbook on jobs (runbook, finished);
create index jobs_bad on jobs (outcome, finished) where outcome <> 'succeeded';
create index jobs_bad_customer on jobs (customer, outcome, finished) where outcome <> 'succeeded';
create index jobs_bad_host on jobs (host, outcome, finished) where outcome <> 'succeeded';
create index jobs_bad_runbook on jobs (runbook, outcome, finished) where outcome <> 'succeeded';
create index jobs_bad_operator on jobs (operator, outcome, finished) where outcome <> 'succeeded';
