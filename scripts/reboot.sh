if [ -d /run/systemd/system ] && command -v systemd-run > /dev/null; then
  exec systemd-run --quiet --on-active=3 --timer-property=AccuracySec=100ms systemctl reboot
fi
if command -v setsid > /dev/null; then
  setsid sh -c 'sleep 3; exec reboot' > /dev/null 2>&1 < /dev/null &
else
  nohup sh -c 'sleep 3; exec reboot' > /dev/null 2>&1 < /dev/null &
fi
