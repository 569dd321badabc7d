-- +goose Up
-- What the time of a job went to: seconds by use, as JSON; empty: not known.
alter table jobs add column times text not null default '';

-- +goose Down
alter table jobs drop column times;
